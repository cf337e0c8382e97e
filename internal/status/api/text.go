package api

import (
	"cmp"
	"strings"
	"unicode"
)

// signedBy is who gives an order and why, for the history: what they call themselves
// is told, and proves nothing. via is "the API" or "the admin socket".
func signedBy(name, reason, via string) (by, why string) {
	return cmp.Or(legible(name, 64), "somebody") + " via " + via, legible(reason, 500)
}

// legible is one line of what somebody wrote.
func legible(text string, most int) string {
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return text
}
