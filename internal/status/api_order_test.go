package status

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"baton/internal/operate"
)

func TestTheLogSaysOfAnOrderWhatIsKnownAndOnce(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string // "": it was told elsewhere
	}{
		{nil, "an order was carried out"},
		{fmt.Errorf("%w: no such action", operate.ErrInvalid), "an order was not carried out"},
		{&operate.Coded{Code: "refused", Kind: operate.ErrRefused, Err: errors.New("it runs already")}, "an order was not carried out"},
		{context.DeadlineExceeded, "it is not known whether an order was carried out"},
		{&operate.Coded{Code: "not_reloaded", Kind: operate.ErrInvalid, Err: errors.New("line 3")}, ""},
	} {
		core, told := observer.New(zap.InfoLevel)
		tellOutcome(zap.New(core), operate.Outcome{}, tc.err)
		switch all := told.All(); {
		case tc.want == "" && len(all) == 0:
		case len(all) != 1 || all[0].Message != tc.want:
			t.Errorf("%v: %+v, want %q", tc.err, all, tc.want)
		}
	}
}

func TestTheLogNamesOfAnOrderOnlyWhatItHas(t *testing.T) {
	core, told := observer.New(zap.InfoLevel)
	log := zap.New(core)
	log.Info("", tellOrder(operate.Order{Kind: "pause", By: "ann", Job: "views"}, caller{how: "token", address: "127.0.0.1:1"})...)
	log.Info("", tellOrder(operate.Order{Kind: "drop", Letters: make([]operate.LetterKey, 3)}, caller{how: "socket"})...)
	for i, want := range []map[string]any{
		{"action": "pause", "by": "by ann", "job": "views", "with": "token", "address": "127.0.0.1:1"},
		{"action": "drop", "with": "socket", "letters": int64(3)},
	} {
		if got := told.All()[i].ContextMap(); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
