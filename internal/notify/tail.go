package notify

import "strings"

// tail stores the last bytes of the written text.
type tail struct {
	most int
	kept []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p[max(0, len(p)-t.most):]...)
	if over := len(t.kept) - t.most; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// filtered is a tail of a filter's output. A tail of the unfiltered output could begin within a secret, so that the filter would not find
// the secret.
type filtered struct {
	to      *tail
	through Filter // if nil, the output is not filtered
}

// Write implements io.Writer.
func (f *filtered) Write(p []byte) (int, error) {
	if f.through == nil {
		return f.to.Write(p)
	}
	f.through(p, false, f.keep)
	return len(p), nil
}

func (f *filtered) keep(p []byte) { _, _ = f.to.Write(p) } // the tail accepts any text

// String returns the end of the output as one line.
func (f *filtered) String() string {
	if f.through != nil {
		f.through(nil, true, f.keep)
	}
	return f.to.String()
}

// String returns the text as one line.
func (t *tail) String() string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(t.kept), "�")), " ")
}
