package daemon

import (
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// The leader's log is not read any more, and Redis does not answer, so the term cannot return by its hard stop. No run is in progress that
// could act at the same time as the next leader's. So the process does not have to die, and leads again.
func TestAnIdleTermThatCannotReturnDoesNotEndTheProcess(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "30 2 1 1 *")
	l.config = l.config.WithDefaults()
	l.do("HSET", "{baton}:stages", "\x00gone\x00key", "views") // the term logs that this store is not configured any more
	stuck, release := make(chan struct{}), make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	defer free()
	var once sync.Once
	r := startWith(t, l.config, nil, func(o *Options) {
		o.Logger = o.Logger.WithOptions(zap.Hooks(func(e zapcore.Entry) error {
			if strings.Contains(e.Message, "a store that is not configured any more") {
				once.Do(func() { close(stuck); <-release })
			}
			return nil
		}))
	})
	r.leads()
	await(t, "the term to be unable to return", func() bool {
		select {
		case <-stuck:
			return true
		default:
			return false
		}
	})
	l.server.Freeze()
	await(t, "the end of the lease", func() bool { return r.metric(`baton_lease_remaining_seconds{lock="baton"}`) == "0" })
	l.server.Thaw()
	free()
	await(t, "the next term", func() bool { return r.logs.FilterMessage("leading").Len() > 1 || len(r.exited) > 0 })
	select {
	case code := <-r.exited:
		t.Errorf("the process was ended with code %d", code)
	default:
	}
	r.endsWell()
}
