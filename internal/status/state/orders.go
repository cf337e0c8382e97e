package state

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"go.uber.org/zap"

	"baton/internal/operate"
	"baton/internal/status/auth"
	"baton/internal/status/web"
	"baton/internal/text"
)

// maxOrders are carried out at a time.
const maxOrders = 8

// Supervised carries out orders of those who may give them, some at a time, and logs every
// one. The request must have passed [auth.Auth.MayOrder], too: this is the last
// door, and knows nothing of forged requests.
func (w *State) Supervised(do operate.Do) operate.Do {
	places := make(chan struct{}, maxOrders)
	return func(ctx context.Context, o operate.Order) (out operate.Outcome, err error) {
		who := auth.CallerOf(ctx)
		if who.How == "" {
			return operate.Outcome{}, auth.ErrSignIn
		}
		log := w.Log.With(orderFields(o, who)...)
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			log.Warn("an order was not taken: there are too many at a time")
			return operate.Outcome{}, web.ErrBusy
		}
		// One whose giver hangs up is finished: half an order is worse than none.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), web.OrderWithin)
		defer cancel()
		stays := context.AfterFunc(w.Life, cancel)
		defer stays()
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%s panicked: %v", o.Kind, p)
				log.Error("an order panicked", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			}
			logOutcome(log, out, err)
		}()
		defer w.Outdate() // the next state shows what it did
		return do(ctx, o)
	}
}

// orderFields are those of an order for the log: what it names, and of most orders that is
// little.
func orderFields(o operate.Order, who auth.Caller) []zap.Field {
	var fields []zap.Field
	by := ""
	if o.By != "" {
		by = o.Signature()
	}
	for _, f := range []struct{ key, value string }{
		{"action", string(o.Kind)}, {"by", by}, {"with", who.How}, {"address", who.Address}, {"job", o.Job}, {"run_id",
			o.RunID}, {"to", o.To}, {"letter", o.Letter},
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

// logOutcome logs the outcome of an order. A refused reload is logged by the daemon, which has
// read the configuration.
func logOutcome(log *zap.Logger, out operate.Outcome, err error) {
	coded, ok := errors.AsType[*operate.Coded](err)
	refused, _ := errors.AsType[*web.Refusal](err)
	switch {
	case err == nil:
		log.Info("an order was carried out", zap.String("outcome", out.Text))
	case ok && coded.Code == "not_reloaded":
	case refused != nil, errors.Is(err, operate.ErrNotFound), errors.Is(err, operate.ErrInvalid), errors.Is(err,
		operate.ErrRefused), errors.Is(err, operate.ErrNoLeader):
		log.Warn("an order was not carried out", zap.Error(err))
	default: // a server did not answer: it may have done it
		log.Warn("it is not known whether an order was carried out", zap.Error(err))
	}
}

// Signed is who gives an order, and why, as the history keeps it: a line each. It is what they
// say of themselves, and proves nothing.
func Signed(name, reason string) (by, why string) {
	const mostName, mostReason = 200, 1000 // in bytes
	return text.Clip(text.OneLine(name), mostName), text.Clip(text.OneLine(reason), mostReason)
}
