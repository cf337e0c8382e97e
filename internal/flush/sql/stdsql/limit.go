package stdsql

import (
	"context"
	"time"
)

// Cutter is a driver's connection that can be cut while a statement waits on it, from any goroutine.
type Cutter interface{ Cut() }

// limit bounds a session's statement by ctx and the limit of a round trip. The context that it returns is the driver's.
//
// For each statement under a context that can end, go-sql-driver wakes a second goroutine, twice. On a busy machine that
// takes longer than a small statement does. So a connection that can be cut is cut from here, and the driver is given a
// context that never ends. end returns the error of the statement, or why it was cut.
func (s *Session) limit(ctx context.Context) (calm context.Context, end func(error) error) {
	if s.limited {
		return ctx, func(err error) error { return err }
	}
	if s.cut == nil {
		calm, cancel := context.WithTimeout(ctx, s.Parent.limits.Trip)
		return calm, func(err error) error { cancel(); return err }
	}
	if ctx.Err() != nil {
		return ctx, func(error) error { return ctx.Err() }
	}
	s.limited = true
	release := context.AfterFunc(ctx, s.cut)
	s.timer.Reset(s.Parent.limits.Trip)
	return context.WithoutCancel(ctx), func(err error) error {
		s.limited = false
		inTime, inTerm := s.timer.Stop(), release()
		s.severed = s.severed || !inTime || !inTerm
		switch {
		case err == nil:
		case !inTerm:
			err = ctx.Err()
		case !inTime:
			err = context.DeadlineExceeded
		}
		return err
	}
}

// arm lets a session cut its connection, if the driver can.
func (s *Session) arm() error {
	return s.Conn.Raw(func(conn any) error {
		if c, ok := conn.(Cutter); ok {
			s.cut = c.Cut
			s.timer = time.AfterFunc(time.Hour, c.Cut)
			s.timer.Stop()
		}
		return nil
	})
}
