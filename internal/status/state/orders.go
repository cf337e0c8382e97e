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

// maxOrders is the maximum number of orders that run at the same time.
const maxOrders = 8

// Supervised returns a function that carries out the orders of identified callers. It runs at most maxOrders orders at the same time, and
// logs each order. The caller must also check the request with [auth.Auth.MayOrder], because Supervised does not detect forged requests.
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
			log.Warn("an order was refused: too many orders are being carried out")
			return operate.Outcome{}, web.ErrBusy
		}
		// The order continues even if the client hangs up, because half an order is worse than none.
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
		defer w.Outdate() // the next state shows the effect of the order
		return do(ctx, o)
	}
}

// orderFields returns the log fields of an order. It omits empty fields, because most orders set only a few fields.
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
	if o.Row != 0 {
		fields = append(fields, zap.Int64("row", o.Row))
	}
	if len(o.Letters) > 0 {
		fields = append(fields, zap.Int("letters", len(o.Letters)))
	}
	return fields
}

// logOutcome logs the outcome of an order. It does not log a refused reload, because the daemon logs the refusal when it reads the
// configuration.
func logOutcome(log *zap.Logger, out operate.Outcome, err error) {
	cause := zap.Error(err)
	if _, private := errors.AsType[*operate.PrivateError](err); private {
		cause = zap.String("error", "the reason may contain a user's data, so only the caller gets it")
	}
	coded, ok := errors.AsType[*operate.Coded](err)
	refused, _ := errors.AsType[*web.Refusal](err)
	switch {
	case err == nil:
		log.Info("an order was carried out", zap.String("outcome", out.Text))
	case ok && coded.Code == "not_reloaded":
	case refused != nil, errors.Is(err, operate.ErrNotFound), errors.Is(err, operate.ErrInvalid), errors.Is(err,
		operate.ErrRefused), errors.Is(err, operate.ErrNoLeader):
		log.Warn("an order was not carried out", cause)
	default: // a server did not answer, but may have carried out the order
		log.Warn("it is not known whether an order was carried out", cause)
	}
}

// Signed returns the name and the reason of an order as the history stores them: each is one line of limited length. Callers choose both
// texts freely, so the texts do not prove who gave the order.
func Signed(name, reason string) (by, why string) {
	const mostName, mostReason = 200, 1000 // in bytes
	return text.Clip(text.OneLine(name), mostName), text.Clip(text.OneLine(reason), mostReason)
}
