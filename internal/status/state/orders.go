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

// maxOrders bounds the orders that run at the same time.
const maxOrders = 8

// Supervised carries out the orders of identified callers, at most maxOrders at a time, and logs
// each one. The request must have passed [auth.Auth.MayOrder], too: this last check
// does not detect forged requests.
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
		// Finish the order even if the client hangs up: half an order is worse than none.
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
		defer w.Outdate() // the next state shows its effect
		return do(ctx, o)
	}
}

// orderFields returns the log fields of an order. It omits the empty ones, since most orders
// set only a few.
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

// logOutcome logs the outcome of an order. It skips a refused reload: the daemon, which reads
// the configuration, logs that.
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
	default: // a server did not answer, but may have carried out the order
		log.Warn("it is not known whether an order was carried out", zap.Error(err))
	}
}

// Signed returns the name and the reason in an order as the history keeps them: one line each,
// of limited length. Callers choose both freely, so they prove nothing.
func Signed(name, reason string) (by, why string) {
	const mostName, mostReason = 200, 1000 // in bytes
	return text.Clip(text.OneLine(name), mostName), text.Clip(text.OneLine(reason), mostReason)
}
