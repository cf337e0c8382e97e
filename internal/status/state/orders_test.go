package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"baton/internal/operate"
	"baton/internal/status/auth"
	"baton/internal/status/web"
)

func TestTheLogSaysOfAnOrderWhatIsKnownAndOnce(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string // "" means that another part has logged it
	}{
		{nil, "an order was carried out"},
		{fmt.Errorf("%w: no such action", operate.ErrInvalid), "an order was not carried out"},
		{&operate.Coded{Code: "refused", Kind: operate.ErrRefused, Err: errors.New("it runs already")}, "an order was not carried out"},
		{context.DeadlineExceeded, "it is not known whether an order was carried out"},
		{&operate.Coded{Code: "not_reloaded", Kind: operate.ErrInvalid, Err: errors.New("line 3")}, ""},
	} {
		core, told := observer.New(zap.InfoLevel)
		logOutcome(zap.New(core), operate.Outcome{}, tc.err)
		switch all := told.All(); {
		case tc.want == "" && len(all) == 0:
		case len(all) != 1 || all[0].Message != tc.want:
			t.Errorf("%v: %+v, want %q", tc.err, all, tc.want)
		}
	}
}

func TestTheLogDoesNotContainTheReasonThatMayHoldAUsersData(t *testing.T) {
	core, told := observer.New(zap.InfoLevel)
	private := &operate.PrivateError{Err: fmt.Errorf("%w: Key (email)=(ann@example.com) already exists", operate.ErrRefused)}
	logOutcome(zap.New(core), operate.Outcome{}, fmt.Errorf("row 7: %w", private))
	if all := told.All(); len(all) != 1 || all[0].Message != "an order was not carried out" ||
		strings.Contains(fmt.Sprint(all[0].ContextMap()), "ann@") {
		t.Errorf("%+v", all)
	}
}

func TestTheLogNamesOfAnOrderOnlyWhatItHas(t *testing.T) {
	core, told := observer.New(zap.InfoLevel)
	log := zap.New(core)
	log.Info("", orderFields(operate.Order{Kind: "pause", By: "ann", Job: "views"}, auth.Caller{How: "token", Address: "127.0.0.1:1"})...)
	log.Info("", orderFields(operate.Order{Kind: "drop", Letters: make([]operate.LetterKey, 3)}, auth.Caller{How: "socket"})...)
	for i, want := range []map[string]any{
		{"action": "pause", "by": "by ann", "job": "views", "with": "token", "address": "127.0.0.1:1"},
		{"action": "drop", "with": "socket", "letters": int64(3)},
	} {
		if got := told.All()[i].ContextMap(); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// bySocketOf returns a context of a caller who may give orders.
func bySocketOf(ctx context.Context) context.Context {
	return auth.WithCaller(ctx, auth.Caller{How: auth.BySocket})
}

func TestAnOrderIsTheLastDoors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		release := make(chan struct{})
		var cut error
		w := New(Config{Log: zap.New(core)})
		do := w.Supervised(func(ctx context.Context, o operate.Order) (operate.Outcome, error) {
			switch o.Job {
			case "panics":
				panic("planted")
			case "hangs":
				select {
				case <-release:
				case <-ctx.Done():
					cut = context.Cause(ctx)
				}
			}
			return operate.Outcome{Text: "done"}, nil
		})
		if _, err := do(t.Context(), operate.Order{Kind: operate.KindRun}); !errors.Is(err, auth.ErrSignIn) {
			t.Errorf("from nobody: %v", err)
		}
		for range maxOrders + 1 {
			if _, err := do(bySocketOf(t.Context()), operate.Order{Kind: operate.KindRun, Job: "panics"}); err == nil ||
				!strings.Contains(err.Error(), "planted") {
				t.Fatalf("an order that panics: %v", err)
			}
		}
		if n := logs.FilterMessage("an order panicked").Len(); n != maxOrders+1 {
			t.Errorf("told %d times", n)
		}
		ctx, hangUp := context.WithCancel(t.Context())
		for range maxOrders {
			go func() { _, _ = do(bySocketOf(ctx), operate.Order{Kind: operate.KindRun, Job: "hangs"}) }()
		}
		synctest.Wait()
		hangUp()
		synctest.Wait()
		if _, err := do(bySocketOf(t.Context()), operate.Order{Kind: operate.KindRun}); !errors.Is(err, web.ErrBusy) {
			t.Errorf("whoever hung up has freed a place, or there are too many: %v", err)
		}
		close(release)
		synctest.Wait()
		if _, err := do(bySocketOf(t.Context()), operate.Order{Kind: operate.KindRun}); err != nil || cut != nil {
			t.Errorf("%v; the order of who hung up was cut short: %v", err, cut)
		}
		release = nil
		go func() { _, _ = do(bySocketOf(t.Context()), operate.Order{Kind: operate.KindRun, Job: "hangs"}) }()
		synctest.Wait()
		w.End()
		synctest.Wait()
		if cut == nil {
			t.Error("an order holds up the end of the daemon")
		}
	})
}
