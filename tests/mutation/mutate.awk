# Replaces the text OLD, which has to be in the input exactly once, by NEW (both
# from the environment, with \n and \t for a line's end and a tab) and prints
# the result. Says on stderr what is wrong and exits 1.

function plain(text) {
	gsub(/\\n/, "\n", text)
	gsub(/\\t/, "\t", text)
	return text
}

{ all = all $0 "\n" }

END {
	old = plain(ENVIRON["OLD"])
	new = plain(ENVIRON["NEW"])
	at = index(all, old)
	if (old == "" || at == 0) {
		print "the old text is not there" >"/dev/stderr"
		exit 1
	}
	rest = substr(all, at + length(old))
	if (index(rest, old) != 0) {
		print "the old text is there more than once" >"/dev/stderr"
		exit 1
	}
	if (old == new) {
		print "the new text is the old one" >"/dev/stderr"
		exit 1
	}
	printf "%s%s%s", substr(all, 1, at - 1), new, rest
}
