package capture

import (
	"context"
	"errors"
	"io"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/redisconn/follow"
)

// named are keys that have only a name.
type named struct{ Keys }

func (named) Name() string { return "s:<id>" }

// A run may find a key missing before the stream shows the reason. The row must stay until then, since the reason may be a command that has
// emptied the database.
func TestARowOfAMissingKeyWaitsForTheReason(t *testing.T) {
	f := fed(t, 1<<20)
	c := &Capture{keys: named{}, store: plainStore(t), options: Options{Job: "j", OnFlush: flushStop}}
	c.store.Attached(attached("j", c.Name()), func() io.Closer { return closer{f.feed} })
	f.hears(2, "SET s:1 a")
	f.Reached(follow.Position{ReplID: "id", Offset: 200, DB: 2})
	b, _, err := f.take(flushStop)
	if err != nil || len(b.keys) != 1 {
		t.Fatalf("%+v, %v", b, err)
	}
	ahead := heads{all: []follow.Position{{ReplID: "id", Offset: 300}}}
	gone := func() *flush.Page { return &flush.Page{Records: []row.Record{{Key: "s:1", Gone: true}, {Key: "s:2"}}} }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.spareRows(ctx, gone(), b, ahead); !errors.Is(err, context.Canceled) {
		t.Errorf("the row goes although the stream has not told why its key is missing: %v", err)
	}
	page, sifted := gone(), make(chan error, 1)
	go func() { sifted <- c.spareRows(t.Context(), page, b, ahead) }()
	f.hears(2, "FLUSHALL")
	f.Reached(follow.Position{ReplID: "id", Offset: 300, DB: 2})
	if err := <-sifted; err != nil || len(page.Records) != 1 || page.Records[0].Key != "s:2" {
		t.Errorf("after FLUSHALL %+v is to be written, %v", page.Records, err)
	}
}
