// The routes that exist and the document that describes them are the same.
#include <gmock/gmock.h>

#include "api/openapi.h"
#include "api/resources.h"
#include "controller/fixture.h"

namespace clusterctl::controller {
namespace {

TEST_F(ControllerTest, EveryRouteIsInTheDocumentAndBack) {
  api::Router router;
  api::add_routes(router, c(), {});
  EXPECT_TRUE(router.mistakes()) << router.mistakes().error().line();
  const auto document = parse_json(api::kOpenapiText, "openapi.json", 64);
  ASSERT_TRUE(document) << document.error().line();
  EXPECT_THAT(api::compare_with_document(router.routes(), *document), testing::IsEmpty());
}

}  // namespace
}  // namespace clusterctl::controller
