#include "cli/several.h"

#include <fmt/format.h>

#include <set>

#include "base/strings.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

// That the daemon cannot be asked is true of all names; these are about one.
bool is_about_the_name(const Error& error) {
  return error.code == Code::kNotFound || error.code == Code::kConflict ||
         error.code == Code::kInvalid;
}

Error all_of(std::vector<Error> wrong) {
  Error out = wrong.front();
  if (wrong.size() > 1) {
    out.problems.clear();
    for (Error& e : wrong)
      out.problems.push_back({std::move(e.reason), std::move(e.message), std::move(e.hint), ""});
    out.reason = out.problems.front().code;
    out.message = fmt::format("{}, the first: {}", count(out.problems.size(), "problem"),
                              out.problems.front().message);
  }
  return out;
}

}  // namespace

Result<std::vector<Json>> look_up_all(const std::vector<std::string>& names,
                                      const std::function<Result<Json>(const std::string&)>& find) {
  std::vector<Json> out;
  std::vector<Error> wrong;
  std::set<std::string> known;
  for (const std::string& name : names) {
    auto found = find(name);
    if (!found && !is_about_the_name(found.error())) return fail(found.error());
    if (!found) {
      wrong.push_back(found.error());
    } else if (known.insert(text(*found, "id")).second) {
      out.push_back(std::move(*found));
    }
  }
  if (wrong.empty()) return out;
  Error error = all_of(std::move(wrong));
  if (names.size() > 1) error.message = "nothing was changed: " + error.message;
  return fail(std::move(error));
}

Result<std::vector<Json>> look_up_nodes(Session& session, const std::vector<std::string>& names) {
  return look_up_all(names, [&session](const std::string& name) {
    return session.get("/v1/nodes/" + client::escape(name));
  });
}

void Several::refused(const Error& error) {
  if (!first_) {
    first_ = error;
  } else {
    print_error(session_.terminal, error, 0, session_.color);
  }
}

Result<int> Several::end() {
  if (!first_) return kExitOk;
  if (!done_.empty())
    first_->message += fmt::format("; {} of these are done: {}", done_.size(), join(done_, ", "));
  return fail(std::move(*first_));
}

}  // namespace clusterctl::cli
