// The scripts that make a shell ask `clusterctl __complete` (complete.h). They know nothing of
// commands themselves, so that one of another version cannot be wrong.
#include "cli/command.h"
#include "cli/session.h"

namespace clusterctl::cli {
namespace {

// COMP_WORDS is not used: readline takes what stands around = and : for words of their own. For the
// same reason only what follows the last of these is given back.
constexpr std::string_view kBash =
    R"(# clusterctl completion for bash: source <(clusterctl completion bash)
_clusterctl() {
  local line=${COMP_LINE:0:COMP_POINT} words=() breaks='' cut='' candidate about
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  local word=${words[${#words[@]} - 1]}
  [[ $COMP_WORDBREAKS == *=* ]] && breaks+='='
  [[ $COMP_WORDBREAKS == *:* ]] && breaks+=':'
  [[ -n $breaks ]] && cut=${word%"${word##*[$breaks]}"}
  COMPREPLY=()
  while IFS=$'\t' read -r candidate about; do
    if [[ $candidate == :files ]]; then
      compopt -o filenames 2>/dev/null
      while read -r candidate; do COMPREPLY+=("$candidate"); done < <(compgen -f -- "${word#"$cut"}")
      return
    fi
    [[ $candidate == *= ]] && compopt -o nospace 2>/dev/null
    COMPREPLY+=("${candidate#"$cut"}")
  done < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
}
complete -F _clusterctl clusterctl
)";

constexpr std::string_view kZsh = R"(#compdef clusterctl
# clusterctl completion for zsh: source <(clusterctl completion zsh), or as _clusterctl in a folder of $fpath
_clusterctl() {
  local line word
  local -a whole shown open
  for line in "${(@f)$("${(Q)words[1]}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    word=${line%%$'\t'*}
    case $word in
      '') ;;
      :files) _files; return ;;
      *=) open+=("$word") ;;
      *) whole+=("$word")
         if [[ $line == *$'\t'* ]]; then shown+=("$word  -- ${line#*$'\t'}"); else shown+=("$word"); fi ;;
    esac
  done
  (( $#whole )) && compadd -l -d shown -a whole
  (( $#open )) && compadd -S '' -a open
  (( $#whole + $#open ))
}
if [[ ${funcstack[1]} == _clusterctl ]]; then
  _clusterctl "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _clusterctl clusterctl
fi
)";

constexpr std::string_view kFish =
    R"(# clusterctl completion for fish: clusterctl completion fish | source
function __clusterctl_complete
  set -l words (commandline -opc)
  for line in ($words[1] __complete $words[2..-1] (commandline -ct) 2>/dev/null)
    if test "$line" = :files
      __fish_complete_path (commandline -ct)
    else
      printf '%s\n' $line
    end
  end
end
complete -c clusterctl -f -a '(__clusterctl_complete)'
)";

class Completion final : public Command {
 public:
  Completion() : Command("completion", "Completion of commands, options and names for a shell") {
    details =
        "Names of nodes, jobs, groups and the like are asked from the daemon when Tab is pressed; "
        "a daemon that does\n"
        "not answer within a second gives none.\n"
        "bash: source <(clusterctl completion bash)      fish: clusterctl completion fish | "
        "source\n"
        "zsh:  source <(clusterctl completion zsh)";
    needs_server = false;
  }
  void options(Options& o) override {
    o.argument("SHELL", shell_, "bash, zsh or fish").choices = {"bash", "zsh", "fish"};
  }
  Result<int> run(Session& session) override {
    session.terminal.out(shell_ == "bash" ? kBash : shell_ == "zsh" ? kZsh : kFish);
    return kExitOk;
  }

 private:
  std::string shell_;
};

}  // namespace

CommandPtr make_completion() {
  return std::make_unique<Completion>();
}

}  // namespace clusterctl::cli
