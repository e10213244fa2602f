#include "run/run_dir.h"

#include <fmt/format.h>

#include <system_error>

#include "base/json.h"

namespace clusterctl::run {
namespace {

constexpr int kFormat = 1;

}  // namespace

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

Status write_run_record(const RunDir& dir, const RunRecord& record) {
  const Json json = {{"format", kFormat},
                     {"id", record.id},
                     {"job", record.job},
                     {"stage", record.stage},
                     {"playbook", record.playbook},
                     {"argv", record.argv},
                     {"env", record.env},
                     {"created", record.created},
                     {"control_dir", record.control_dir.string()},
                     {"kill_after_ms", record.kill_after.count()},
                     {"max_log_bytes", record.max_log_bytes}};
  return create_file(dir.run_json(), dump_json(json, 1) + "\n", 0600);
}

Result<RunRecord> read_run_record(const RunDir& dir) {
  const auto text = read_file(dir.run_json(), 4 << 20);
  if (!text) return fail(text.error());
  const auto json = parse_json_object(*text, dir.run_json().string());
  if (!json) return fail(json.error());
  const auto format = get_int(*json, "format");
  if (!format || *format != kFormat) {
    return fail(Code::kInternal, "run_format",
                fmt::format("{} is not of format {}", dir.run_json().string(), kFormat));
  }
  RunRecord out;
  try {
    out.id = json->at("id").get<std::string>();
    out.job = json->value("job", "");
    out.stage = json->value("stage", "");
    out.playbook = json->value("playbook", "");
    out.created = json->value("created", "");
    out.argv = json->at("argv").get<std::vector<std::string>>();
    out.env = json->at("env").get<std::map<std::string, std::string>>();
    out.control_dir = json->value("control_dir", "");
    out.kill_after = std::chrono::milliseconds(json->value("kill_after_ms", int64_t{10000}));
    out.max_log_bytes = json->value("max_log_bytes", size_t{256 << 20});
  } catch (const Json::exception& e) {
    return fail(Code::kInternal, "run_format",
                fmt::format("{} is damaged: {}", dir.run_json().string(), e.what()));
  }
  return out;
}

std::string exit_text(const Exit& exit) {
  return dump_json({{"code", exit.code},
                    {"signal", exit.signal},
                    {"ended", exit.ended},
                    {"cancelled", exit.cancelled},
                    {"truncated", exit.truncated},
                    {"events_lost", exit.events_lost}}) +
         "\n";
}

Result<Exit> read_exit(const RunDir& dir) {
  const auto text = read_file(dir.exit(), 1 << 16);
  if (!text) return fail(text.error());
  const auto json = parse_json_object(*text, dir.exit().string());
  if (!json) return fail(json.error());
  const auto code = get_int(*json, "code");
  const auto signal = get_int(*json, "signal");
  const auto ended = get_string(*json, "ended");
  const auto cancelled = get_bool(*json, "cancelled");
  const auto truncated = get_bool(*json, "truncated");
  const auto lost = get_bool(*json, "events_lost");
  if (!code || !signal || !ended || !cancelled || !truncated || !lost || !json->contains("code")) {
    return fail(Code::kInternal, "run_format", fmt::format("{} is damaged", dir.exit().string()));
  }
  return Exit{
      static_cast<int>(*code), static_cast<int>(*signal), *cancelled, *truncated, *lost, *ended};
}

RunState look_at(const RunDir& dir) {
  // `started` is written while the lock is held, so a free lock afterwards means that the shim has
  // ended; it may have written exit.json in between.
  if (is_there(dir.exit())) {
    if (const auto exit = read_exit(dir)) return {Phase::kFinished, *exit};
    return {Phase::kInterrupted, std::nullopt};
  }
  const bool started = is_there(dir.started());
  if (FileLock::held(dir.lock())) return {Phase::kRunning, std::nullopt};
  if (started) {
    if (const auto exit = read_exit(dir)) return {Phase::kFinished, *exit};
    return {Phase::kInterrupted, std::nullopt};
  }
  return {is_there(dir.run_json()) ? Phase::kPrepared : Phase::kUnknown, std::nullopt};
}

Status remove_temporaries(const RunDir& dir, const fs::path& control_dir) {
  Status out;
  for (const fs::path& path :
       {dir.inventory(), dir.vars(), dir.secrets(), dir.temporary(), dir.child(), control_dir}) {
    if (path.empty()) continue;
    std::error_code error;
    fs::remove_all(path, error);
    if (error && error != std::errc::no_such_file_or_directory) {
      out = fail(Code::kInternal, "io",
                 fmt::format("cannot remove {}: {}", path.string(), error.message()));
    }
  }
  return out;
}

}  // namespace clusterctl::run
