#include "cli/wanted_file.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/process.h"
#include "base/strings.h"
#include "cli/text.h"

namespace clusterctl::cli {
namespace {

constexpr size_t kMaxInput = 1 << 20;
constexpr size_t kMaxAnswer = 64 << 20;
constexpr std::chrono::minutes kProgramPatience{5};

// A folder of our own that goes again.
class TempFolder {
 public:
  TempFolder() {
    std::error_code ec;
    std::string name = (fs::temp_directory_path(ec) / "clusterctl-XXXXXX").string();
    if (!ec && ::mkdtemp(name.data())) path_ = name;
  }
  ~TempFolder() {
    std::error_code ec;
    if (!path_.empty()) fs::remove_all(path_, ec);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

tl::unexpected<Error> no_folder() {
  return fail(Code::kInternal, "no_temp", "no temporary folder can be made", "see TMPDIR");
}

std::map<std::string, std::string> environment() {
  std::map<std::string, std::string> out;
  for (char** e = environ; e && *e; ++e) {
    const std::string_view entry(*e);
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string name(entry.substr(0, equals));
    const bool kept = name == "PATH" || name == "HOME" || name == "LANG" || name == "TMPDIR" ||
                      name.starts_with("LC_") || name.starts_with("ANSIBLE_");
    if (kept) out[name] = entry.substr(equals + 1);
  }
  // A source that nothing could read is no empty inventory.
  out["ANSIBLE_INVENTORY_UNPARSED_FAILED"] = "true";
  out["ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED"] = "true";
  out["ANSIBLE_NOCOLOR"] = "1";
  return out;
}

// Where Ansible looks for an inventory, and for host_vars/ and group_vars/ besides those beside it.
struct Source {
  fs::path inventory, vars;
};

// Group names have hyphens here, and no folder beside the caller may add variables.
Result<std::string> ask_ansible(const Source& source, const fs::path& folder, bool exported) {
  const fs::path answer = folder / (exported ? "exported.json" : "listed.json");
  ProcessSpec spec;
  spec.argv = {"ansible-inventory",
               "-i",
               source.inventory.string(),
               "--list",
               "--playbook-dir",
               source.vars.string(),
               "--output",
               answer.string()};
  if (exported) spec.argv.emplace_back("--export");
  spec.env = environment();
  spec.env.try_emplace("ANSIBLE_TRANSFORM_INVALID_GROUP_CHARS", "ignore");
  auto output = run_process(std::move(spec), kProgramPatience);
  if (!output) {
    Error error = output.error();
    error.code = Code::kRefused;
    error.hint = "is ansible-core installed here?";
    return fail(std::move(error));
  }
  if (!output->status.ok()) {
    std::string why;
    for (const std::string& line : split(output->text, '\n', true)) {
      if (line.find("ERROR") != std::string::npos) why = trim(line);
    }
    return fail(
        Code::kRefused, "ansible_inventory",
        fmt::format("ansible-inventory cannot read {}: {}", one_line(source.inventory.string()),
                    why.empty() ? "it failed" : truncate_utf8(one_line(why), 300)),
        fmt::format("ansible-inventory -i {} --list shows more",
                    one_line(source.inventory.string())));
  }
  return read_file(answer, kMaxAnswer);
}

// inventory/ in the folder is the inventory, as in the own reader, and the folder has the
// variables.
Source source_of(const fs::path& path, const fs::path& nothing) {
  std::error_code ec;
  const fs::path absolute = fs::absolute(path, ec);
  if (fs::is_directory(absolute / "inventory", ec)) return {absolute / "inventory", absolute};
  return {absolute, nothing};
}

Result<inventory::Inventory> through_ansible(const fs::path& path,
                                             const std::vector<std::string>& groups) {
  const TempFolder folder;
  if (folder.path().empty()) return no_folder();
  const Source source = source_of(path, folder.path());
  auto exported = ask_ansible(source, folder.path(), true);
  if (!exported) return fail(exported.error());
  auto listed = ask_ansible(source, folder.path(), false);
  if (!listed) return fail(listed.error());
  return inventory::inventory_of_ansible(*exported, *listed, one_line(path.string()), groups);
}

// What the own reader does not know and Ansible may: other formats, merge keys, tags.
bool outside_subset(const Error& error) {
  static const std::set<std::string> reasons{"bad_yaml", "no_inventory", "bad_range", "no_hosts"};
  if (reasons.count(error.reason)) return true;
  return !error.problems.empty() &&
         std::all_of(error.problems.begin(), error.problems.end(),
                     [](const Problem& p) { return reasons.count(p.code) != 0; });
}

Result<inventory::Inventory> read_path(Session& session, const fs::path& path,
                                       const std::string& reader,
                                       const std::vector<std::string>& groups) {
  if (reader == "ansible") return through_ansible(path, groups);
  auto own = inventory::read_inventory(path, groups);
  if (own || reader == "own" || !outside_subset(own.error())) return own;
  auto other = through_ansible(path, groups);
  if (!other) return own;
  session.note(
      clean(fmt::format("note: read by ansible-inventory, because: {}", own.error().message)));
  return other;
}

}  // namespace

Result<inventory::Inventory> read_wanted(Session& session, const std::string& path,
                                         const std::string& reader) {
  auto cluster = session.get("/v1/cluster");
  if (!cluster) return fail(cluster.error());
  const std::vector<std::string> groups = texts(field(*cluster, "host_groups"));
  if (path != "-") return read_path(session, path, reader, groups);
  const TempFolder folder;
  if (folder.path().empty()) return no_folder();
  auto text = read_file("/dev/stdin", kMaxInput);
  if (!text) return fail(text.error());
  const fs::path file = folder.path() / "stdin.yml";
  if (auto done = write_file_atomic(file, *text); !done) return fail(done.error());
  return read_path(session, file, reader, groups);
}

Json document_of(const inventory::Inventory& inventory) {
  Json out{{"nodes", Json::array()}};
  for (const inventory::NodeDraft& node : inventory.nodes)
    out["nodes"].push_back({{"name", node.name}, {"spec", node.spec}});
  if (!inventory.globals.empty()) out["globals"] = inventory.globals;
  return out;
}

}  // namespace clusterctl::cli
