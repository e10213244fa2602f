// The files of an inventory before anything is interpreted: groups, hosts and their variables as
// written. Internal to this room.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace clusterctl::inventory {

struct Group {
  Json vars = Json::object();       // from the inventory file
  Json file_vars = Json::object();  // from group_vars/
  std::set<std::string> hosts, children;
};
struct Host {
  Json vars = Json::object();
  Json file_vars = Json::object();  // from host_vars/
};
struct Sources {
  std::map<std::string, Group> groups;  // "all" is always there
  std::map<std::string, Host> hosts;
  // What Ansible itself makes of each host, when it was asked: it wins. Connection settings too.
  std::map<std::string, Json> effective;
  std::vector<std::string> notes;
  std::vector<Problem> problems;

  void problem(std::string code, std::string message, std::string hint = "", std::string node = "");
};

Sources read_sources(const fs::path& path);
// The answers of `ansible-inventory --list --export` and `ansible-inventory --list`.
Sources sources_of_ansible(const Json& exported, const Json& listed);

// "node[01:12].rack" -> node01.rack … node12.rack; a name without a range is itself.
Result<std::vector<std::string>> expand_range(const std::string& pattern);

// Later wins, shallow, as Ansible does by default.
void overlay(Json& base, const Json& top);

}  // namespace clusterctl::inventory
