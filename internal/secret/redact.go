package secret

import (
	"bytes"
	"cmp"
	"slices"
)

// redacted is the text that replaces a secret.
const redacted = "***"

// Redactor removes secrets from a stream, even if a secret is split over several writes. For this purpose it holds back a text that may be
// the beginning of a secret. If several secrets overlap, all their bytes are removed.
type Redactor struct {
	secrets [][]byte // the longest secret first
	waiting []byte
	covered int // the number of bytes in waiting that a written *** already replaces
}

// NewRedactor returns a Redactor for the given secrets.
func NewRedactor(secrets []string) *Redactor {
	r := &Redactor{}
	for _, s := range secrets {
		if s != "" {
			r.secrets = append(r.secrets, []byte(s))
		}
	}
	slices.SortStableFunc(r.secrets, func(a, b []byte) int { return cmp.Compare(len(b), len(a)) })
	return r
}

// Pass passes the text to the function out, with *** in place of each secret. It holds back the end of the text if this may be the
// beginning of a secret. If the argument last is true, Pass holds back nothing.
func (r *Redactor) Pass(text []byte, last bool, out func([]byte)) {
	if len(r.secrets) == 0 {
		out(text)
		return
	}
	if len(r.waiting) > 0 {
		text = append(r.waiting, text...)
		r.waiting = nil
	}
	hold := len(text)
	if !last {
		hold = r.begins(text)
	}
	at := r.covered
	for _, s := range r.find(text, hold) {
		if s.from >= at {
			out(text[at:s.from])
			out([]byte(redacted))
		}
		at = max(at, s.to) // if two secrets overlap, the rest of the second secret is also removed
	}
	if at < hold {
		out(text[at:hold])
	}
	r.waiting, r.covered = bytes.Clone(text[hold:]), max(at-hold, 0)
}

// span is the position of a secret in a text.
type span struct{ from, to int }

// find returns the positions of the secrets that begin before the given offset. The positions are sorted.
func (r *Redactor) find(text []byte, before int) []span {
	var all []span
	for _, s := range r.secrets {
		for from := 0; from < before; {
			i := bytes.Index(text[from:], s)
			if i < 0 || from+i >= before {
				break
			}
			all = append(all, span{from + i, from + i + len(s)})
			from += i + 1 // the secret may overlap itself
		}
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	return all
}

// begins returns the position in the text where an unfinished secret may begin. If there is none, it returns the length of the text.
func (r *Redactor) begins(text []byte) int {
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
