package secret

import (
	"bytes"
	"cmp"
	"slices"
)

// redacted replaces a secret.
const redacted = "***"

// Redactor removes secrets from a stream, even if one comes in pieces: a possible beginning of a secret waits for the following text. If
// several overlap, every byte that any of them covers is removed.
type Redactor struct {
	secrets [][]byte // the longest first
	waiting []byte
	covered int // bytes of waiting that a *** already passed on stands for
}

// NewRedactor makes a Redactor for these secrets.
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

// Pass passes on the text that no unfinished secret can be in; with last it passes on all of it.
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
		at = max(at, s.to) // if two overlap, the rest of the second one goes, too
	}
	if at < hold {
		out(text[at:hold])
	}
	r.waiting, r.covered = bytes.Clone(text[hold:]), max(at-hold, 0)
}

// stretch is the place of a secret.
type stretch struct{ from, to int }

// find are the secrets in a text that begin before an offset, in order.
func (r *Redactor) find(text []byte, before int) []stretch {
	var all []stretch
	for _, s := range r.secrets {
		for from := 0; from < before; {
			i := bytes.Index(text[from:], s)
			if i < 0 || from+i >= before {
				break
			}
			all = append(all, stretch{from + i, from + i + len(s)})
			from += i + 1 // it may overlap itself
		}
	}
	slices.SortFunc(all, func(a, b stretch) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	return all
}

// begins is the beginning of a possible secret at the end of the text.
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
