#include "apps/trinco/completion/scripts.hpp"

namespace trinco::program {
namespace {

// bash splits words at : and =, which names and --option=value contain: they are joined again, and
// what bash believes to stand before the last word is cut from the answers. Behind -- the user's
// own command is completed as if it stood alone.
constexpr std::string_view bash = R"(# bash completion of trinco:
#   trinco completion bash > ~/.local/share/bash-completion/completions/trinco
_trinco() {
    local i word glued=false words=() cut=''
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == -- && $i -lt $COMP_CWORD ]]; then
            if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); fi
            return
        fi
        if [[ $word == [:=]* || $glued == true ]] && ((${#words[@]})); then
            words[${#words[@]} - 1]+=$word
        else
            words+=("$word")
        fi
        glued=false
        [[ $word == *[:=] ]] && glued=true
    done
    ((${#words[@]})) || words=('')
    local last=${words[${#words[@]} - 1]}
    [[ $last == *[:=]* ]] && cut=${last%"${last##*[:=]}"}
    COMPREPLY=()
    while IFS= read -r word; do
        COMPREPLY+=("${word#"$cut"}")
    done < <("${COMP_WORDS[0]}" complete -- "${words[@]}" 2>/dev/null)
}
complete -o default -F _trinco trinco
)";

constexpr std::string_view zsh = R"(#compdef trinco
# zsh completion of trinco, as the file _trinco in a folder of $fpath:
#   trinco completion zsh > ~/.zfunc/_trinco
_trinco() {
    local -i separator=${words[(i)--]}
    if (( separator < CURRENT )); then
        shift $separator words
        (( CURRENT -= separator ))
        _normal
        return
    fi
    local -a found
    found=("${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if (( ${#found} )) && [[ -n ${found[1]} ]]; then
        compadd -- "${found[@]}"
    else
        _files
    fi
}
if [[ ${funcstack[1]} == _trinco ]]; then
    _trinco "$@"
else
    compdef _trinco trinco
fi
)";

constexpr std::string_view fish = R"(# fish completion of trinco:
#   trinco completion fish > ~/.config/fish/completions/trinco.fish
function __trinco_complete
    set -l before (commandline -opc)
    set -l last (commandline -ct)
    if set -l separator (contains -i -- -- $before)
        set -l own $before[(math $separator + 1)..-1]
        complete -C (string join ' ' -- (string escape -- $own) $last)
        return
    end
    set -l found ($before[1] complete -- $before[2..-1] $last 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path $last
    end
end
complete -c trinco -f -a '(__trinco_complete)'
)";

}  // namespace

std::string_view completion_script(std::string_view shell) {
    if (shell == "bash") return bash;
    if (shell == "zsh") return zsh;
    return shell == "fish" ? fish : std::string_view();
}

}  // namespace trinco::program
