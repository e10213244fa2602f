#include <fmt/format.h>

#include "ansible/events.h"
#include "base/strings.h"

namespace clusterctl::ansible {
namespace {

constexpr size_t kMaxMembers = 1000;
constexpr size_t kMaxWord = 256;
constexpr size_t kMaxMessage = 4000;
constexpr size_t kMaxCards = 64;

// "02:42:0a:00:00:0b"
bool valid_mac(const std::string& text) {
  return text.size() == 17 && text.find_first_not_of("0123456789abcdef:") == std::string::npos;
}

Result<std::string> text(const Json& fact, const char* key, size_t limit = kMaxWord) {
  auto value = get_string(fact, key);
  if (value) *value = truncate_utf8(one_line(*value), limit);
  return value;
}

Status check_version(const Json& fact, std::string_view what) {
  if (!fact.is_object())
    return fail(Code::kInvalid, "bad_fact", fmt::format("{} is not an object", what));
  const auto version = get_int(fact, "v");
  if (!version || *version != 1)
    return fail(Code::kInvalid, "bad_fact", fmt::format("{} is not of version 1", what));
  return {};
}

template <typename Target>
Status read_texts(const Json& fact, std::initializer_list<std::pair<const char*, Target>> fields) {
  for (const auto& [key, target] : fields) {
    auto value = text(fact, key);
    if (!value) return fail(value.error());
    *target = *value;
  }
  return {};
}

Result<fleet::Member> decode_member(const Json& value) {
  fleet::Member out;
  if (!value.is_object()) return fail(Code::kInvalid, "bad_fact", "a member is not an object");
  if (auto ok = read_texts<std::string*>(
          value, {{"id", &out.id}, {"name", &out.name}, {"addr", &out.addr}, {"role", &out.role}});
      !ok) {
    return fail(ok.error());
  }
  const auto reachable = get_bool(value, "reachable");
  const auto leader = get_bool(value, "leader");
  if (!reachable) return fail(reachable.error());
  if (!leader) return fail(leader.error());
  out.reachable = *reachable;
  out.leader = *leader;
  return out;
}

Status decode_members(const Json& fact, std::vector<fleet::Member>& out) {
  const auto members = fact.find("members");
  if (members == fact.end() || members->is_null()) return {};
  if (!members->is_array()) return fail(Code::kInvalid, "bad_fact", "\"members\" is not a list");
  if (members->size() > kMaxMembers)
    return fail(Code::kInvalid, "bad_fact", fmt::format("more than {} members", kMaxMembers));
  for (const Json& value : *members) {
    auto member = decode_member(value);
    if (!member) return fail(member.error());
    out.push_back(std::move(*member));
  }
  return {};
}

}  // namespace

Result<fleet::ServiceStatus> decode_service_fact(const Json& fact, Time observed) {
  if (auto ok = check_version(fact, "the verify fact"); !ok) return fail(ok.error());
  const auto healthy = fact.find("healthy");
  if (healthy == fact.end() || !healthy->is_boolean())
    return fail(Code::kInvalid, "bad_fact", "the verify fact does not say whether it is healthy");
  fleet::ServiceStatus out;
  out.healthy = healthy->get<bool>();
  out.observed = observed;
  auto message = text(fact, "message", kMaxMessage);
  if (!message) return fail(message.error());
  out.message = *message;
  if (auto ok = read_texts<std::string*>(fact, {{"version", &out.version},
                                                {"role", &out.role},
                                                {"member_id", &out.member_id},
                                                {"endpoint", &out.endpoint}});
      !ok) {
    return fail(ok.error());
  }
  if (auto ok = decode_members(fact, out.members); !ok) return fail(ok.error());
  return out;
}

Result<fleet::Hardware> decode_hardware_fact(const Json& fact) {
  if (auto ok = check_version(fact, "the hardware fact"); !ok) return fail(ok.error());
  fleet::Hardware out;
  if (auto ok = read_texts<std::string*>(fact, {{"vendor", &out.vendor},
                                                {"model", &out.model},
                                                {"serial", &out.serial},
                                                {"uuid", &out.uuid},
                                                {"machine_id", &out.machine_id},
                                                {"series", &out.series},
                                                {"os", &out.os},
                                                {"os_version", &out.os_version},
                                                {"arch", &out.arch},
                                                {"kernel", &out.kernel},
                                                {"host_name", &out.host_name}});
      !ok) {
    return fail(ok.error());
  }
  // Since they are newer than the rest: absent in the facts of older playbooks.
  if (auto ok = read_texts<std::string*>(fact, {{"chassis", &out.chassis}, {"slot", &out.slot}});
      !ok) {
    return fail(ok.error());
  }
  auto macs = get_strings(fact, "macs");
  if (!macs) return fail(macs.error());
  for (const std::string& mac : *macs) {
    if (out.macs.size() < kMaxCards && valid_mac(mac)) out.macs.push_back(mac);
  }
  const auto cpus = get_int(fact, "cpus");
  const auto memory = get_int(fact, "memory_mb");
  if (!cpus) return fail(cpus.error());
  if (!memory) return fail(memory.error());
  out.cpus = std::max<int64_t>(0, *cpus);
  out.memory_mb = std::max<int64_t>(0, *memory);
  return out;
}

}  // namespace clusterctl::ansible
