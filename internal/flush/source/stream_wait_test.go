package source

import (
	"context"
	"errors"
	"testing"
	"time"

	"baton/internal/flush"
)

func TestWaitingForAStreamEndsWhenItIsRewound(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	db := newDatabase()
	g.fillStream(4, 5, nil)
	src := g.stream(StreamOptions{})
	db.drain(t, src)
	if _, err := db.flush(t.Context(), src, nil); err != nil { // it sees that there is nothing more
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if src.Wait(short) == nil {
		t.Fatal("there is no work")
	}
	g.Do("DEL", "events")
	g.fillStream(1, 3, nil)
	long, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := src.Wait(long); err != nil {
		t.Fatalf("it still waits for ids that may never come: %v", err)
	}
	if _, err := db.flush(t.Context(), src, nil); !errors.Is(err, flush.ErrGap) {
		t.Errorf("flush: %v", err)
	}
}
