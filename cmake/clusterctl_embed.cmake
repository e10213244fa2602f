# Puts a text file into a library as `extern const std::string_view <namespace>::<symbol>` (declared by hand where it is used). The source
# is made in the build tree, and made again when the file changes.
function(clusterctl_embed target file namespace symbol)
  set(input ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${input})
  file(READ ${input} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embed/${symbol}.cpp)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"#include <string_view>

namespace @namespace@ {
namespace {
constexpr char @symbol@Bytes[] = {
@bytes@};
}  // namespace
extern const std::string_view @symbol@;
const std::string_view @symbol@(@symbol@Bytes, sizeof @symbol@Bytes);
}  // namespace @namespace@
")
  target_sources(${target} PRIVATE ${output})
endfunction()
