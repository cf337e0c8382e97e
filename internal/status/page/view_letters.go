package page

import (
	"net/url"
	"time"

	"baton/internal/operate"
	"baton/internal/status/state"
	"baton/internal/text"
)

// lettersPage are dead letters: records that did not fit their table.
type lettersPage struct {
	Job     string // of that alone; "": of all
	Letters []letterView
	More    bool
	Trouble []string // what could not be read
	Secret  bool     // records are shown after signing in only
}

type letterView struct {
	ID, Job, JobURL, Database string
	Why, Record               string
	When                      instant
	Replay, Drop              string // where that is done
}

// lettersShown is how many one page has.
const lettersShown = 100

// maxRecord keeps a page of many records small.
const maxRecord = 400

func newLetters(letters []operate.Letter, now time.Time, see bool) (views []letterView) {
	for _, l := range letters {
		v := letterView{
			ID: l.ID, Job: l.Job, JobURL: jobURL(l.Job), Database: l.Database, When: at(l.At.UTC(), now),
			Why: clip(visible(l.Error)), Replay: orderURL(operate.KindReplay, "letter", l.ID),
			Drop: orderURL(operate.KindDrop, "letter", l.ID),
		}
		if see {
			v.Record = visible(l.Record)
			if len(v.Record) > maxRecord {
				v.Record = text.Clip(v.Record, maxRecord)
			}
		} else {
			v.Why = state.PublicError(v.Why)
		}
		views = append(views, v)
	}
	return views
}

// orderURL is the page that asks whether an order is meant. pairs are names and values.
func orderURL(a operate.Kind, pairs ...string) string {
	q := url.Values{"action": {string(a)}}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return "/confirm?" + q.Encode()
}
