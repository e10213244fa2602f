// Reads operator-written YAML into JSON once, at the edge, so that the rest of the program knows
// only JSON. Any thread.
//
// YAML 1.2 core rules for plain scalars: true/false, null/~, decimal integers and fractions;
// everything else is text: "yes", "012", "1e3", "12:30:45". Quoted scalars are always text; the
// tags !!str !!int !!float !!bool !!null !!seq !!map are obeyed, all others refused. One document a
// file. Limits: 1 MiB, 32 levels, and after aliases 100,000 values and 4 MiB of text. Duplicate
// keys and merge keys ("<<") are Errors. Errors carry "file:line:column".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/json.h"

namespace clusterctl {

Result<Json> parse_yaml(std::string_view text, std::string_view file_name);
// The same text with plain scalars as Ansible takes them: base/yaml_scalars.h.
Result<Json> parse_yaml_1_1(std::string_view text, std::string_view file_name);
Result<Json> read_yaml(const fs::path& path);

// Keys of the mapping at `path` in the order of the file, which JSON objects do not keep; empty
// when there is none. The text must have passed parse_yaml.
std::vector<std::string> yaml_key_order(std::string_view text,
                                        const std::vector<std::string>& path);

}  // namespace clusterctl
