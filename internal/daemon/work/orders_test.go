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
		{redisledger.Cancelled{Runs: []string{"a"}, Retry: 2}, nil, "runs cancelled; they are ending", 1},
		{redisledger.Cancelled{Retry: 2}, nil, "retry cancelled", 1},
		{redisledger.Cancelled{}, nil, "nothing to cancel", 0},
		{redisledger.Cancelled{}, errors.New("no"), "cancellation refused", 1},
	} {
		core, told := zaptest.New(zap.InfoLevel)
		logCancelled(zap.New(core), tc.did, tc.err)
		if all := told.All(); len(all) != 1 || all[0].Message != tc.want || len(all[0].Context) != tc.fields {
			t.Errorf("%+v, %v: %+v", tc.did, tc.err, all)
		}
	}
}
