#include "access/authority.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "access/private_file.h"
#include "base/log.h"
#include "base/time.h"

namespace clusterctl::access {
namespace {

constexpr std::chrono::hours kDay{24};
constexpr std::chrono::hours kAuthorityLife = 3652 * kDay;  // 10 years
constexpr std::chrono::hours kServerLife = 730 * kDay;      // 2 years
constexpr std::chrono::hours kBackdated{1};                 // clocks of clients may be behind
constexpr std::chrono::hours kWarnBefore = 365 * kDay;

Error in_file(const fs::path& path, Error error, std::string hint) {
  error.message = path.string() + ": " + error.message;
  if (error.hint.empty()) error.hint = std::move(hint);
  return error;
}

std::string new_authority_hint(const fs::path& dir) {
  return fmt::format(
      "restore it from a backup; or remove {} to have a new authority made, whose fingerprint all "
      "clients then need",
      dir.string());
}

Status check_times(const Certificate& c, Time now) {
  if (now > c.not_after) {
    return fail(Code::kInvalid, "expired",
                fmt::format("the certificate has expired on {}", format_time(c.not_after)));
  }
  if (now < c.not_before) {
    return fail(Code::kInvalid, "not_yet_valid",
                fmt::format("the certificate is not valid before {}", format_time(c.not_before)),
                "look at this machine's clock");
  }
  return {};
}

std::set<std::string> canonical(const std::set<std::string>& names) {
  std::set<std::string> out;
  for (const std::string& name : names) out.insert(canonical_name(name));
  out.erase("");
  return out;
}

Status check_folder(const fs::path& dir) {
  struct stat info {};
  if (stat(dir.c_str(), &info) == 0 && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return fail(Code::kInvalid, "bad_mode",
              fmt::format("the folder {} can be written by others", dir.string()),
              fmt::format("chmod 700 {}; and look whether somebody did", dir.string()));
}

}  // namespace

// In a folder beside, which then gets its name: nobody ever finds half of it.
Status Authority::create(const fs::path& dir, Time now) {
  fs::path fresh = dir;
  fresh += ".new";
  std::error_code ec;
  fs::remove_all(fresh, ec);
  if (auto ok = make_dirs(fresh, 0700); !ok) return ok;
  auto key = make_key();
  if (!key) return fail(key.error());
  auto made = make_authority(*key, {now - kBackdated, now + kAuthorityLife});
  if (!made) return fail(made.error());
  if (auto ok = write_file_atomic(fresh / "ca.pem", *key + made->pem, 0600); !ok) return ok;
  fs::rename(fresh, dir, ec);
  if (ec) {
    return fail(Code::kInternal, "io",
                fmt::format("cannot create {}: {}", dir.string(), ec.message()));
  }
  log::info("made the authority of the API, SHA-256 {}", made->fingerprint);
  return sync_dir(dir.parent_path());
}

Result<Authority> Authority::open(const fs::path& dir, Time now) {
  std::error_code ec;
  if (!fs::exists(fs::symlink_status(dir, ec))) {
    if (auto made = create(dir, now); !made) return fail(made.error());
  }
  if (auto ok = check_folder(dir); !ok) return fail(ok.error());
  const fs::path file = dir / "ca.pem";
  const std::string hint = new_authority_hint(dir);
  auto pem = read_private_file(file);
  if (!pem) {
    Error error = pem.error();
    if (error.hint.empty()) error.hint = hint;
    return fail(std::move(error));
  }
  auto all = read_certificates(*pem);
  if (!all) return fail(in_file(file, all.error(), hint));
  Certificate ca = std::move(all->front());
  if (auto ok = check_key(ca, *pem); !ok) return fail(in_file(file, ok.error(), hint));
  if (!ca.authority) {
    return fail(in_file(
        file,
        {Code::kInvalid, "no_authority", "this is not the certificate of an authority", "", {}},
        hint));
  }
  if (auto ok = check_times(ca, now); !ok) return fail(in_file(file, ok.error(), hint));
  if (ca.not_after - now < kWarnBefore) {
    log::warn("the authority of the API ends on {}: plan a new one (docs/operations.md)",
              format_time(ca.not_after));
  }
  Authority out(dir, std::move(*pem), std::move(ca));
  const auto copy = read_file(out.certificate_file());
  if (!copy || *copy != out.certificate_.pem) {
    if (auto ok = write_file_atomic(out.certificate_file(), out.certificate_.pem, 0644); !ok) {
      return fail(ok.error());
    }
  }
  return out;
}

ServerIdentity Authority::identity(const Certificate& server, std::string key) const {
  return {server.pem + certificate_.pem, std::move(key), certificate_.fingerprint, server.not_after,
          server.names};
}

Result<ServerIdentity> Authority::renew(const std::set<std::string>& names, Time now) const {
  auto key = make_key();
  if (!key) return fail(key.error());
  const Time end = std::min<Time>(now + kServerLife, certificate_.not_after);
  auto made = issue(certificate_, key_, *key, names, {now - kBackdated, end});
  if (!made) return fail(made.error());
  if (auto ok = write_file_atomic(dir_ / "server.pem", *key + made->pem, 0600); !ok) {
    return fail(ok.error());
  }
  log::info("made the certificate of the API, until {}", format_time(made->not_after));
  return identity(*made, std::move(*key));
}

Result<ServerIdentity> Authority::server(const std::set<std::string>& given, Time now) const {
  const std::set<std::string> names = canonical(given);
  const fs::path file = dir_ / "server.pem";
  const std::string hint = fmt::format("remove {} to have a new one made", file.string());
  auto pem = read_private_file(file);
  if (!pem) {
    if (pem.error().code == Code::kNotFound) return renew(names, now);
    return fail(pem.error());
  }
  auto all = read_certificates(*pem);
  if (!all) return fail(in_file(file, all.error(), hint));
  const Certificate& server = all->front();
  if (auto ok = check_key(server, *pem); !ok) return fail(in_file(file, ok.error(), hint));
  if (auto ok = check_issuer(server, certificate_); !ok) {
    return fail(in_file(file, ok.error(), hint));
  }
  const bool old = now + (server.not_after - server.not_before) / 3 >= server.not_after ||
                   now < server.not_before;
  if (old && server.not_after < certificate_.not_after) return renew(names, now);
  if (server.names != names) return renew(names, now);
  return identity(server, std::move(*pem));
}

Result<ServerIdentity> read_supplied(const fs::path& certificate, const fs::path& key,
                                     const fs::path& ca, Time now) {
  auto pem = read_file(certificate, 1 << 20);
  if (!pem) return fail(pem.error());
  auto chain = read_certificates(*pem);
  if (!chain) return fail(in_file(certificate, chain.error(), ""));
  auto key_pem = read_private_file(key);
  if (!key_pem) return fail(key_pem.error());
  if (auto ok = check_key(chain->front(), *key_pem); !ok) {
    return fail(in_file(key, ok.error(), "tls.key must be the key of tls.certificate"));
  }
  if (!ca.empty()) {
    auto ca_pem = read_file(ca, 1 << 20);
    if (!ca_pem) return fail(ca_pem.error());
    auto authority = read_certificates(*ca_pem);
    if (!authority) return fail(in_file(ca, authority.error(), ""));
    if (authority->front().fingerprint != chain->back().fingerprint) {
      chain->push_back(std::move(authority->front()));
    }
  }
  ServerIdentity out;
  for (size_t i = 0; i < chain->size(); ++i) {
    const Certificate& one = (*chain)[i];
    if (auto ok = check_times(one, now); !ok) return fail(in_file(certificate, ok.error(), ""));
    if (i == 0) continue;
    if (auto ok = check_issuer((*chain)[i - 1], one); !ok) {
      return fail(in_file(certificate, ok.error(),
                          "each certificate must be signed by the one that follows it"));
    }
  }
  for (const Certificate& one : *chain) out.chain += one.pem;
  out.key = std::move(*key_pem);
  out.fingerprint = chain->back().fingerprint;
  out.not_after = chain->front().not_after;
  out.names = chain->front().names;
  return out;
}

}  // namespace clusterctl::access
