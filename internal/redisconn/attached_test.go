package redisconn

import (
	"io"
	"testing"
)

// counted counts how often it is closed.
type counted struct{ closed int }

func (c *counted) Close() error { c.closed++; return nil }

func TestWhatIsAttachedEndsWithTheStore(t *testing.T) {
	s, err := Open(Options{URL: "redis://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	var made []*counted
	open := func() io.Closer { made = append(made, &counted{}); return made[len(made)-1] }
	first := s.Attached("a", open)
	if s.Attached("a", open) != first || len(made) != 1 {
		t.Error("it was made twice")
	}
	if err := s.Close(); err != nil || made[0].closed != 1 {
		t.Errorf("closed %d times: %v", made[0].closed, err)
	}
	s.Attached("a", open) // by a run that is still in progress
	if _, there := s.Attachment("a"); there || len(made) != 2 || made[1].closed != 1 {
		t.Errorf("what a closed store was given goes on: %+v", made)
	}
}
