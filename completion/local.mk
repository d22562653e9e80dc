# completion/: for the shells, each where its shell looks under that prefix. A
# distribution that has another place for zsh's sets zshcompletiondir.

bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/site-functions

dist_bashcompletion_DATA = \
	completion/bash/rl-agent \
	completion/bash/rl-sandbox \
	completion/bash/rlctl
dist_zshcompletion_DATA = \
	completion/zsh/_rl-agent \
	completion/zsh/_rl-sandbox \
	completion/zsh/_rlctl
