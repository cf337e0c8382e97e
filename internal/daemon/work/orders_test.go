package work

import (
	"errors"
	"testing"

	"go.uber.org/zap"
	zaptest "go.uber.org/zap/zaptest/observer"

	"baton/internal/redisledger"
)

func TestTheLogTellsOfACancellationWhatItCameTo(t *testing.T) {
	for _, tc := range []struct {
		did    redisledger.Cancelled
		err    error
		want   string
		fields int
	}{
		{redisledger.Cancelled{Runs: []string{"a"}, Retry: 2}, nil, "runs were told to end", 1},
		{redisledger.Cancelled{Retry: 2}, nil, "a run that was to be tried again was cancelled", 1},
		{redisledger.Cancelled{}, nil, "a cancellation was asked for, and there was nothing to cancel", 0},
		{redisledger.Cancelled{}, errors.New("no"), "a cancellation was asked for, and is refused", 1},
	} {
		core, told := zaptest.New(zap.InfoLevel)
		tellCancelled(zap.New(core), tc.did, tc.err)
		if all := told.All(); len(all) != 1 || all[0].Message != tc.want || len(all[0].Context) != tc.fields {
			t.Errorf("%+v, %v: %+v", tc.did, tc.err, all)
		}
	}
}
