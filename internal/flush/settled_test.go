package flush_test

import (
	"errors"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
)

// A run may be skipped only if it would do nothing but look for pending changes.
func TestAPipelineIsSettledAfterARunOfTheTermThatSucceeded(t *testing.T) {
	s := flushtest.NewScript("s")
	cfg, db := users(s)
	p := mustNew(t, cfg)
	one, two := leader(1), leader(2)
	run := func(lead flush.Leadership) error {
		_, err := p.Run(t.Context(), lead)
		return err
	}
	is := func(when string, lead flush.Leadership, want bool) {
		t.Helper()
		if got := p.Settled(lead); got != want {
			t.Errorf("%s: settled: %v, want %v", when, got, want)
		}
	}
	is("before the first run", one, false)
	if err := run(one); err != nil {
		t.Fatal(err)
	}
	is("after it", one, true)
	is("of another term", two, false)
	is("of a term whose epoch was raised since", &fakeLead{owner: one.owner, epoch: 5}, false)

	s.On = failing("stage")
	if err := run(one); !errors.Is(err, errRefused) {
		t.Fatal(err)
	}
	is("after a failure", one, false)
	s.On = nil
	if err := run(one); err != nil {
		t.Fatal(err)
	}
	is("after a run that went well again", one, true)

	table, err := cfg.Sink.Table(t.Context(), "users")
	if err != nil {
		t.Fatal(err)
	}
	db.DropTable("users")
	s.SetPages(user("1", "Ann"))
	p.Unverify()
	if err := run(one); !errors.Is(err, flush.ErrNoTable) {
		t.Fatal(err)
	}
	is("without its table", one, false)
	db.SetTable(table)
	s.On = on("stage", func() error {
		is("while it runs", one, false)
		return nil
	})
	if err := run(one); err != nil {
		t.Fatal(err)
	}
	is("with it", one, true)
}
