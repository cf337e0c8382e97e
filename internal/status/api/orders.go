package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"baton/internal/operate"
	"baton/internal/status/auth"
	"baton/internal/status/state"
	"baton/internal/status/web"
)

// These are the bodies of orders. Every field is optional unless its comment says otherwise.
type (
	// signature is part of every order.
	signature struct {
		// By is the name of the user who gives the order, for the history. It proves nothing.
		By     string `json:"by,omitzero"`
		Reason string `json:"reason,omitzero"`
	}
	stepDownBody struct {
		signature
		// To is the successor. By default the successor is the first node that is ready.
		To string `json:"to,omitzero"`
		// Lock is the key of another election's lock. By default it is the node's own lock.
		Lock string `json:"lock,omitzero"`
		// Wait limits the time to wait for the next term, such as 30s. With 0s the request does not wait.
		Wait string `json:"wait,omitzero"`
	}
	waitBody struct {
		signature
		Wait string `json:"wait,omitzero"`
	}
	runBody struct {
		signature
		// Force runs the job even if other runs of the job are in progress.
		Force bool `json:"force,omitzero"`
		// RunID is a UUID for the run. By default a new UUID is made. If the same order is repeated with the same RunID, the job runs only
		// once.
		RunID string `json:"run_id,omitzero"`
	}
	verifyBody struct {
		signature
		// Sample is the share of all keys to compare, above 0 and up to 1. By default all keys are compared.
		Sample float64 `json:"sample,omitzero"`
		// Rate is the maximum number of keys that are read per second. By default there is no limit.
		Rate int `json:"rate,omitzero"`
		// Repair makes the job flush rows that differ again.
		Repair bool `json:"repair,omitzero"`
		// Examples is the number of differences of each kind to keep. The default is five.
		Examples int `json:"examples,omitzero"`
		// RunID is a UUID for the verification. By default a new UUID is made.
		RunID string `json:"run_id,omitzero"`
	}
	backfillBody struct {
		signature
		// Rate is the maximum number of keys that are marked per second. By default there is no limit.
		Rate int `json:"rate,omitzero"`
		// RunID is a UUID for the backfill. By default a new UUID is made.
		RunID string `json:"run_id,omitzero"`
	}
	acceptBody struct {
		signature
		// Changes and Deletes are the counts of /jobs/{job}/acceptance that the author of the order has seen. The default is 0. The order
		// is refused if more rows wait in the meantime.
		Changes int64 `json:"changes,omitzero"`
		Deletes int64 `json:"deletes,omitzero"`
	}
	cancelBody struct {
		signature
		// RunID is the run to end. By default all runs end.
		RunID string `json:"run_id,omitzero"`
	}
	pauseJobBody struct {
		signature
		// Until is when the pause ends, and For is the duration of the pause. At most one of them may be given.
		Until time.Time `json:"until,omitzero"`
		For   string    `json:"for,omitzero"`
	}
	replayBody struct {
		signature
		// Database is the letter's database. It is needed if the id alone is ambiguous.
		Database string `json:"database,omitzero"`
		// Overwrite replaces a row with the same key, even if that row may be newer.
		Overwrite bool `json:"overwrite,omitzero"`
		// Set replaces inputs of the record; null stands for NULL.
		Set map[string]*string `json:"set,omitempty"`
	}
	dropBody struct {
		signature
		Database string `json:"database,omitzero"`
	}
	replayAllBody struct {
		signature
		Letters   []operate.LetterKey `json:"letters"`
		Overwrite bool                `json:"overwrite,omitzero"`
		Set       map[string]*string  `json:"set,omitempty"`
	}
	dropAllBody struct {
		signature
		Letters []operate.LetterKey `json:"letters"`
	}
	undeleteBody struct {
		signature
		// Database is the row's database. It is needed if several databases contain a deleted row with this id.
		Database string `json:"database,omitzero"`
	}
	reloadBody struct{ signature }
	testBody   struct {
		signature
		// Target is the name of one target in the configuration. By default all targets are tested.
		Target string `json:"target,omitzero"`
	}
)

// mostAtOnce is the maximum number of dead letters that one order may name.
const mostAtOnce = 500

// decode reads the body of an order.
func decode[T any](r *http.Request) (body T, err error) {
	if r.Body == nil || r.ContentLength == 0 {
		return body, nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return body, web.Refuse(http.StatusUnsupportedMediaType, "send a body with Content-Type: application/json, or no body")
	}
	if r.Header.Get("Content-Encoding") != "" {
		return body, web.Refuse(http.StatusUnsupportedMediaType, "send a body without Content-Encoding")
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err = d.Decode(&body)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			return body, badRequest("send one JSON object, and nothing after it")
		}
		return body, nil
	}
	var large *http.MaxBytesError
	var kindOf *json.UnmarshalTypeError
	var network net.Error
	switch {
	case errors.Is(err, io.EOF): // the body was empty after all
		return body, nil
	case errors.As(err, &large):
		return body, web.Refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is longer than %d bytes", large.Limit))
	case errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF) && r.ContentLength < 0:
		return body, badRequest("the body did not arrive completely, or not in time")
	case errors.As(err, &kindOf):
		return body, badRequest("%s: write a value of type %s, not a JSON %s", cmp.Or(kindOf.Field, "the body"), kindOf.Type, kindOf.Value)
	}
	return body, badRequest("the body is not a valid JSON object for this request: %s", clip(strings.TrimPrefix(err.Error(), "json: ")))
}

func (s signature) sign() (by, reason string) { return s.By, s.Reason }

// signed is a body that contains a signature.
type signed interface{ sign() (by, reason string) }

// give returns the function of an endpoint that accepts an order. The argument order is a function that makes the order from the
// body.
func give[T signed](order func(r *http.Request, body T) (operate.Order, error)) askFunc {
	return func(a *API, r *http.Request) (any, error) {
		body, err := decode[T](r)
		if err != nil {
			return nil, err
		}
		o, err := order(r, body)
		if err != nil {
			return nil, err
		}
		via := "the API"
		if auth.OverSocket(r) {
			via = "the admin socket"
		}
		o.By, o.Reason = state.Signed(body.sign())
		o.By = cmp.Or(o.By, "somebody") + " via " + via
		return a.give(r, o)
	}
}

func giveStepDown(_ *http.Request, b stepDownBody) (operate.Order, error) {
	wait, err := waiting(b.Wait)
	return operate.Order{Kind: operate.KindStepDown, To: b.To, Lock: b.Lock, Wait: wait}, err
}

// giveElection returns a function that makes an order for the whole election.
func giveElection(kind operate.Kind) func(*http.Request, waitBody) (operate.Order, error) {
	return func(_ *http.Request, b waitBody) (operate.Order, error) {
		wait, err := waiting(b.Wait)
		return operate.Order{Kind: kind, Wait: wait}, err
	}
}

func giveRun(r *http.Request, b runBody) (operate.Order, error) {
	return operate.Order{Kind: operate.KindRun, Job: r.PathValue("job"), Force: b.Force, RunID: b.RunID}, nil
}

func giveVerify(r *http.Request, b verifyBody) (operate.Order, error) {
	return operate.Order{
		Kind: operate.KindVerify, Job: r.PathValue("job"),
		Sample: b.Sample, Rate: b.Rate, Repair: b.Repair, Examples: b.Examples, RunID: b.RunID,
	}, nil
}

func giveBackfill(r *http.Request, b backfillBody) (operate.Order, error) {
	return operate.Order{Kind: operate.KindBackfill, Job: r.PathValue("job"), Rate: b.Rate, RunID: b.RunID}, nil
}

func giveAccept(r *http.Request, b acceptBody) (operate.Order, error) {
	if b.Changes < 0 || b.Deletes < 0 {
		return operate.Order{}, badRequest("changes, deletes: write the counts from the answer of %s/jobs/{job}/acceptance", Root)
	}
	return operate.Order{Kind: operate.KindAccept, Job: r.PathValue("job"), Changes: b.Changes, Deletes: b.Deletes}, nil
}

func giveCancel(r *http.Request, b cancelBody) (operate.Order, error) {
	return operate.Order{Kind: operate.KindCancel, Job: r.PathValue("job"), RunID: b.RunID}, nil
}

func givePauseJob(r *http.Request, b pauseJobBody) (operate.Order, error) {
	o := operate.Order{Kind: operate.KindPauseJob, Job: r.PathValue("job"), Until: b.Until}
	now := time.Now()
	if b.For != "" {
		d, err := time.ParseDuration(b.For)
		if err != nil || d <= 0 || d > 10*365*24*time.Hour {
			return o, badRequest("for: %q: write a duration such as 2h", b.For)
		}
		if !b.Until.IsZero() {
			return o, badRequest("give either until or for, not both")
		}
		o.Until = now.Add(d)
	}
	if !o.Until.IsZero() && (!o.Until.After(now) || o.Until.Year() > 9000) {
		return o, web.Refuse(http.StatusUnprocessableEntity, fmt.Sprintf("until: %s is not in the future: the time is now %s",
			o.Until.Format(time.RFC3339), now.UTC().Format(time.RFC3339)))
	}
	return o, nil
}

func giveResumeJob(r *http.Request, _ reloadBody) (operate.Order, error) {
	return operate.Order{Kind: operate.KindResumeJob, Job: r.PathValue("job")}, nil
}

func giveReplay(r *http.Request, b replayBody) (operate.Order, error) {
	return operate.Order{Kind: operate.KindReplay, Letter: r.PathValue("id"), Database: b.Database, Overwrite: b.Overwrite, Set: b.Set}, nil
}

func giveDrop(r *http.Request, b dropBody) (operate.Order, error) {
	return operate.Order{Kind: operate.KindDrop, Letter: r.PathValue("id"), Database: b.Database}, nil
}

func giveReplayAll(_ *http.Request, b replayAllBody) (operate.Order, error) {
	if len(b.Set) > 0 && len(b.Letters) > 1 {
		return operate.Order{}, badRequest("set changes one record: name one dead letter")
	}
	return operate.Order{Kind: operate.KindReplay, Letters: b.Letters, Overwrite: b.Overwrite, Set: b.Set}, someLetters(b.Letters)
}

func giveDropAll(_ *http.Request, b dropAllBody) (operate.Order, error) {
	return operate.Order{Kind: operate.KindDrop, Letters: b.Letters}, someLetters(b.Letters)
}

func giveUndelete(r *http.Request, b undeleteBody) (operate.Order, error) {
	id, err := rowID(r)
	return operate.Order{Kind: operate.KindUndelete, Row: id, Database: b.Database}, err
}

func giveReload(*http.Request, reloadBody) (operate.Order, error) {
	return operate.Order{Kind: operate.KindReload}, nil
}

func giveTestNotify(_ *http.Request, b testBody) (operate.Order, error) {
	return operate.Order{Kind: operate.KindTestNotify, Target: b.Target}, nil
}

func someLetters(keys []operate.LetterKey) error {
	if len(keys) == 0 || len(keys) > mostAtOnce {
		return badRequest("letters: there are %d: send 1 to %d", len(keys), mostAtOnce)
	}
	for i, k := range keys {
		if k.ID == "" || k.Database == "" {
			return badRequest("letters[%d]: give id, job and database, as in the answer of /api/v1/dead-letters", i)
		}
	}
	return nil
}

// waiting parses the time that a request waits for the outcome of an order. For an empty text it returns 0, which means the default
// time. For "0s" it returns -1, which means no wait.
func waiting(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	const most = 90 * time.Second
	d, err := time.ParseDuration(text)
	switch {
	case err != nil || d < 0 || d > most:
		return 0, badRequest("wait: %q: write a duration of at most %s, such as 30s; 0s does not wait", text, most)
	case d == 0:
		return -1, nil
	}
	return d, nil
}
