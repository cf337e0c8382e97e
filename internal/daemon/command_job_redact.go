package daemon

import (
	"bytes"
	"cmp"
	"slices"
)

// redacted stands where a secret was.
const redacted = "***"

// redactor takes secrets out of a stream, also where one comes in pieces: what may be
// the beginning of one waits for what follows.
type redactor struct {
	secrets [][]byte // the longest first
	waiting []byte
}

func newRedactor(secrets []string) *redactor {
	r := &redactor{}
	for _, s := range secrets {
		if s != "" {
			r.secrets = append(r.secrets, []byte(s))
		}
	}
	slices.SortStableFunc(r.secrets, func(a, b []byte) int { return cmp.Compare(len(b), len(a)) })
	return r
}

// pass hands on what can be handed on, with last all of it.
func (r *redactor) pass(text []byte, last bool, out func([]byte)) {
	if len(r.secrets) == 0 {
		out(text)
		return
	}
	if len(r.waiting) > 0 {
		text = append(r.waiting, text...)
		r.waiting = nil
	}
	for {
		hold := len(text)
		if !last {
			hold = r.begins(text)
		}
		at, length := r.find(text)
		if at < 0 || at >= hold { // at hold a longer one may be in the making
			out(text[:hold])
			r.waiting = bytes.Clone(text[hold:])
			return
		}
		out(text[:at])
		out([]byte(redacted))
		text = text[at+length:]
	}
}

// find is where the first secret is, of several there the longest; -1 if there is none.
func (r *redactor) find(text []byte) (at, length int) {
	at = -1
	for _, s := range r.secrets {
		before := text
		if at >= 0 { // it must begin sooner to count
			before = text[:min(at+len(s)-1, len(text))]
		}
		if i := bytes.Index(before, s); i >= 0 {
			at, length = i, len(s)
		}
	}
	return at, length
}

// begins is where the end of the text begins that may be the beginning of a secret.
func (r *redactor) begins(text []byte) int {
	first := len(text)
	for _, s := range r.secrets {
		for i := max(len(text)-len(s)+1, 0); i < first; i++ {
			if bytes.HasPrefix(s, text[i:]) {
				first = i
				break
			}
		}
	}
	return first
}
