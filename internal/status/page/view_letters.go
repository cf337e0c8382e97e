package page

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strconv"
	"time"

	"baton/internal/operate"
	"baton/internal/status/state"
	"baton/internal/text"
)

// lettersPage are dead letters: records that did not fit their table.
type lettersPage struct {
	Job     string // of that alone; "": of all
	Groups  []groupView
	Group   *groupView // of that alone; nil: of all
	Letters []letterView
	Newer   string // where the list goes on; "": it does not
	Older   string
	More    bool     // than the page has places for
	Trouble []string // what could not be read
	Secret  bool     // records are shown after signing in only
}

// groupView are the dead letters of a job that have the same reason.
type groupView struct {
	Job, JobURL, Database, Reason, Count string
	Newest                               instant
	URL, Replay, Drop                    string
}

// groupID names a group in addresses, which show nothing of a reason that way.
func groupID(r operate.LetterReason) string {
	sum := sha256.Sum256([]byte(r.Job + "\n" + r.Database + "\n" + r.Reason))
	return hex.EncodeToString(sum[:8])
}

// groupsShown is how many groups the page lists.
const groupsShown = 20

func newGroup(r operate.LetterReason, now time.Time, see bool) groupView {
	v := groupView{
		Job: r.Job, JobURL: jobURL(r.Job), Database: r.Database, Reason: clip(visible(r.Reason)),
		Count: text.Count(r.Letters, "dead letter"), Newest: at(r.Newest.UTC(), now), URL: lettersURL(r.Job, groupID(r), 1),
		Replay: orderURL(operate.KindReplay, "group", groupID(r)), Drop: orderURL(operate.KindDrop, "group", groupID(r)),
	}
	if !see {
		v.Reason = state.PublicError(v.Reason)
	}
	return v
}

// lettersURL is a page of the dead letters of a job, of a group, or of all.
func lettersURL(job, group string, page int) string {
	q := url.Values{}
	if job != "" {
		q.Set("job", job)
	}
	if group != "" {
		q.Set("group", group)
	}
	if page > 1 {
		q.Set("page", strconv.Itoa(page))
	}
	if len(q) == 0 {
		return "/dead-letters"
	}
	return "/dead-letters?" + q.Encode()
}

// pageNumber is the number of a page in a query; at most lettersPages.
func pageNumber(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > lettersPages {
		return 1
	}
	return n
}

type letterView struct {
	ID, Job, JobURL, Database string
	Why, Record               string
	When                      instant
	Replay, Drop              string // where that is done
}

// lettersShown is how many one page has, lettersPages how many pages there are.
const lettersShown, lettersPages = 100, 10

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
