package notify

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/notify/service"
)

func TestATargetGetsNoMoreThanItBears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target, d := newScript(fails), newRig() // an attempt counts regardless of its result
		pace := format("dingtalk").Pace
		d.Update([]Route{{Name: "chat", Target: target, Timeout: time.Second, GiveUpAfter: time.Hour, Pace: pace}})
		for i := range 50 {
			d.Send("chat", Event{Text: strconv.Itoa(i)})
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		tried := target.attempts()
		if len(tried) != 51 || len(target.got()) != 50 {
			t.Fatalf("%d attempts, %d delivered", len(tried), len(target.got()))
		}
		for i := range tried[pace.Most:] {
			if within := tried[i+pace.Most] - tried[i]; within < pace.Within {
				t.Errorf("attempts %d to %d within %s", i, i+pace.Most, within)
			}
		}
		if last := tried[len(tried)-1]; last > 3*time.Minute {
			t.Errorf("50 events took %s", last)
		}
		d.Close(t.Context())
	})
}

func TestAServiceThatWantsNoMoreForATimeIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(context.Context) error {
			return &service.Later{Wait: 40 * time.Second, Err: errors.New("too many")}
		}
		target, d := newScript(slow, slow), newRig()
		d.Update([]Route{{Name: "chat", Target: target, Timeout: time.Second, GiveUpAfter: time.Hour}})
		d.Send("chat", Event{Text: "x"})
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if tried := target.attempts(); len(tried) != 3 || tried[1] != 40*time.Second || tried[2] != 80*time.Second {
			t.Errorf("tried at %v", tried)
		}
		d.Close(t.Context())
	})
}

func TestTheEndOfTheProcessDoesNotWaitForThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target, d := newScript(), newRig()
		d.Update([]Route{{Name: "chat", Target: target, Timeout: time.Second, GiveUpAfter: time.Hour, Pace: service.Pace{Most: 1, Within: time.Hour}}})
		for i := range 3 {
			d.Send("chat", Event{Text: strconv.Itoa(i)})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		d.Close(ctx)
		if got := target.got(); len(got) != 3 {
			t.Errorf("delivered %v", got)
		}
	})
}

func TestWhatWaitsForThePaceGoesWhereAReloadSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after, d := newScript(), newScript(), newRig()
		route := Route{Name: "chat", Target: before, Timeout: time.Second, GiveUpAfter: time.Hour, Pace: service.Pace{Most: 1, Within: time.Hour}}
		d.Update([]Route{route})
		d.Send("chat", Event{Text: "0"})
		d.Send("chat", Event{Text: "1"})
		synctest.Wait()
		route.Target = after
		d.Update([]Route{route})
		synctest.Wait()
		if old, now := before.got(), after.got(); len(old) != 1 || len(now) != 1 {
			t.Errorf("the old address got %v, the new one %v", old, now)
		}
		d.Close(t.Context())
	})
}
