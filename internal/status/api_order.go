package status

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"
	"unicode"

	"go.uber.org/zap"

	"baton/internal/operate"
)

const (
	// maxOrders are carried out at a time.
	maxOrders = 8
	// orderWithin is what an order gets; what it waits for is less.
	orderWithin = 2 * time.Minute
)

// errBusy is that others are served first.
var errBusy = &refusal{http.StatusServiceUnavailable, "too many requests at a time: try again in a second"}

// supervised carries out orders of those who may give them, some at a time, and tells the
// log of every one. Whoever asks must have passed [auth.mayOrder], too: this is the last
// door, and knows nothing of forged requests.
func (s *Server) supervised(do operate.Do) operate.Do {
	return func(ctx context.Context, o operate.Order) (out operate.Outcome, err error) {
		who := callerOf(ctx)
		if who.how == "" {
			return operate.Outcome{}, errSignIn
		}
		log := s.cfg.Logger.With(tellOrder(o, who)...)
		select {
		case s.orders <- struct{}{}:
			defer func() { <-s.orders }()
		default:
			log.Warn("an order was not taken: there are too many at a time")
			return operate.Outcome{}, errBusy
		}
		// One whose giver hangs up is finished: half an order is worse than none.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), orderWithin)
		defer cancel()
		stays := context.AfterFunc(s.watch.life, cancel)
		defer stays()
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%s panicked: %v", o.Kind, p)
				log.Error("an order panicked", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			}
			tellOutcome(log, out, err)
		}()
		defer s.watch.outdate() // whoever gave it sees what it did
		return do(ctx, o)
	}
}

// tellOrder is what the log is told of an order: what it names, and of most orders that is
// little.
func tellOrder(o operate.Order, who caller) []zap.Field {
	var fields []zap.Field
	by := ""
	if o.By != "" {
		by = o.Signature()
	}
	for _, f := range []struct{ key, value string }{
		{"action", string(o.Kind)}, {"by", by}, {"with", who.how}, {"address", who.address}, {"job", o.Job}, {"run_id", o.RunID}, {"to", o.To}, {"letter", o.Letter},
	} {
		if f.value != "" {
			fields = append(fields, zap.String(f.key, f.value))
		}
	}
	if len(o.Letters) > 0 {
		fields = append(fields, zap.Int("letters", len(o.Letters)))
	}
	return fields
}

// tellOutcome tells the log what an order came to. A refused reload is told by whoever has
// read the configuration.
func tellOutcome(log *zap.Logger, out operate.Outcome, err error) {
	coded, ok := errors.AsType[*operate.Coded](err)
	refused, _ := errors.AsType[*refusal](err)
	switch {
	case err == nil:
		log.Info("an order was carried out", zap.String("outcome", out.Text))
	case ok && coded.Code == "not_reloaded":
	case refused != nil, errors.Is(err, operate.ErrNotFound), errors.Is(err, operate.ErrInvalid), errors.Is(err, operate.ErrRefused), errors.Is(err, operate.ErrNobodyLeads):
		log.Warn("an order was not carried out", zap.Error(err))
	default: // a server did not answer: it may have done it
		log.Warn("it is not known whether an order was carried out", zap.Error(err))
	}
}

// signedBy is who gives an order and why, for the history: what they call themselves
// is told, and proves nothing. via is "the API" or "the admin socket".
func signedBy(name, reason, via string) (by, why string) {
	return or(legible(name, 64), "somebody") + " via " + via, legible(reason, 500)
}

// legible is one line of what somebody wrote.
func legible(text string, most int) string {
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return text
}

// patient gives a request the time that an order takes: those of the server are for pages.
func patient(w http.ResponseWriter) {
	c := http.NewResponseController(w)
	until := time.Now().Add(orderWithin + 10*time.Second)
	// A recorder of a test has no deadlines.
	_ = errors.Join(c.SetReadDeadline(until), c.SetWriteDeadline(until))
}
