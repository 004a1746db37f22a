#compdef nonic
# SPDX-License-Identifier: BSD-2-Clause
#
# bash's completion (nonic.bash) serves zsh as well; it is installed in the same tree as this file.
autoload -Uz bashcompinit && bashcompinit
source "${${functions_source[_nonic]}:A:h:h:h}/bash-completion/completions/nonic"
_bash_complete -F _nonic_complete
