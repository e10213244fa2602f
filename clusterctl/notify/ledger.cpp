#include "notify/ledger.h"

#include "base/json.h"

namespace clusterctl::notify {

Result<Cursors> FileLedger::load() {
  Cursors out;
  std::error_code ec;
  if (!fs::exists(file_, ec)) return out;
  const auto damaged = [&] {
    return fail(Code::kInternal, "damaged", file_.string() + " cannot be read",
                "remove it: receivers then begin with what happens from now on");
  };
  const auto text = read_file(file_, 1 << 20);
  if (!text) return fail(text.error());
  const auto json = parse_json_object(*text, file_.string());
  if (!json || !json->contains("cursors") || !(*json)["cursors"].is_object()) return damaged();
  for (const auto& [name, seq] : (*json)["cursors"].items()) {
    if (!seq.is_number_unsigned()) return damaged();
    out[name] = seq.get<uint64_t>();
  }
  return out;
}

Status FileLedger::save(const Cursors& cursors) {
  return write_file_atomic(file_, dump_json({{"format", 1}, {"cursors", cursors}}) + "\n", 0600);
}

}  // namespace clusterctl::notify
