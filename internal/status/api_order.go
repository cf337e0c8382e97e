package status

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"go.uber.org/zap"

	"baton/internal/operate"
)

// maxOrders are carried out at a time.
const maxOrders = 8

// supervised carries out orders of those who may give them, some at a time, and tells the
// log of every one. Whoever asks must have passed [auth.mayOrder], too: this is the last
// door, and knows nothing of forged requests.
func (w *watch) supervised(do operate.Do) operate.Do {
	places := make(chan struct{}, maxOrders)
	return func(ctx context.Context, o operate.Order) (out operate.Outcome, err error) {
		who := callerOf(ctx)
		if who.how == "" {
			return operate.Outcome{}, errSignIn
		}
		log := w.log.With(tellOrder(o, who)...)
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			log.Warn("an order was not taken: there are too many at a time")
			return operate.Outcome{}, errBusy
		}
		// One whose giver hangs up is finished: half an order is worse than none.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), orderWithin)
		defer cancel()
		stays := context.AfterFunc(w.life, cancel)
		defer stays()
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%s panicked: %v", o.Kind, p)
				log.Error("an order panicked", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			}
			tellOutcome(log, out, err)
		}()
		defer w.outdate() // whoever gave it sees what it did
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
