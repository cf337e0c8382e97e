package notify

import "strings"

// tail keeps the end of what is written to it.
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

// String is it on one line.
func (t *tail) String() string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(t.kept), "�")), " ")
}
