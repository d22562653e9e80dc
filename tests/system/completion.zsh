# For test_completion.py: an interactive zsh whose ^X completes the line that is
# in the file $ASK, and writes what it would offer, one a line, to $ANSWER.
PROMPT= RPROMPT= zle_highlight=(none)
setopt no_beep
fpath=($COMPLETIONS $fpath)
autoload -Uz compinit
compinit -D -u

compadd() {
	local -a hits
	if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
		builtin compadd -A hits "$@"
		((! $#hits)) || print -rl -- $hits >>$ANSWER.new
	fi
	builtin compadd "$@"
}

capture() {
	: >$ANSWER.new
	_main_complete
	compstate[list]= compstate[insert]=
	mv $ANSWER.new $ANSWER
}
zle -C capture list-choices capture

ask() {
	BUFFER=$(<$ASK)
	CURSOR=$#BUFFER
	zle capture
	BUFFER=
}
zle -N ask
bindkey '^X' ask
: >$ANSWER
