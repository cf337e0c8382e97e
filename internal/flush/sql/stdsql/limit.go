package stdsql

import (
	"context"
	"time"
)

// Cutter is a driver's connection that any goroutine can cut while a statement waits on the connection.
type Cutter interface{ Cut() }

// limit ends a session's statement when ctx ends or the time limit of a round trip is over. It returns the context for the driver.
//
// If a statement has a context that can end, go-sql-driver wakes a second goroutine twice. On a busy machine this takes longer than a small
// statement. So limit itself cuts the connection, if the connection can be cut, and returns a context that never ends. The function end
// returns the error of the statement, or the reason of the cut.
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

// arm prepares a session for cutting its connection, if the driver's connection is a Cutter.
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
