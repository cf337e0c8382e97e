package page

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/text"
)

// jobFilter selects the jobs to show, and the order of these jobs.
type jobFilter struct {
	Find string // a text that the name, target, lock or store must contain
	Show string // a kind in [shows]; "" means all jobs
	Sort string // a column in [sorts]; "" means failing jobs first
	All  bool   // the number of jobs is not limited
}

// mostFind is the maximum length of jobFilter.Find, in bytes.
const mostFind = 64

// shows contains the kinds of jobs that a filter can select.
var shows = []struct {
	name, label string
	is          func(diagnose.Job, time.Time) bool
}{
	{"trouble", "Failing or late", func(j diagnose.Job, now time.Time) bool { return j.IsFailing() || j.IsLate(now) != "" }},
	{"running", "Running", func(j diagnose.Job, _ time.Time) bool { return j.Running != nil }},
	{"paused", "Paused", func(j diagnose.Job, _ time.Time) bool { return j.Paused != nil }},
	{"flushes", "Flushes", func(j diagnose.Job, _ time.Time) bool { return !j.Command }},
	{"commands", "Commands", func(j diagnose.Job, _ time.Time) bool { return j.Command }},
}

// sorts contains a comparison for each column that can sort the jobs.
var sorts = map[string]func(a, b diagnose.Job, rates map[string]float64) int{
	"name": func(a, b diagnose.Job, _ map[string]float64) int { return strings.Compare(a.Name, b.Name) },
	"next": func(a, b diagnose.Job, _ map[string]float64) int {
		if a.NextRun.IsZero() != b.NextRun.IsZero() { // jobs without a next run come last
			return map[bool]int{true: 1, false: -1}[a.NextRun.IsZero()]
		}
		return a.NextRun.Compare(b.NextRun)
	},
	"last": func(a, b diagnose.Job, _ map[string]float64) int { return startedLast(b).Compare(startedLast(a)) },
	"took": func(a, b diagnose.Job, _ map[string]float64) int { return cmp.Compare(tookLast(b), tookLast(a)) },
	"rows": func(a, b diagnose.Job, rates map[string]float64) int {
		return cmp.Compare(rates[b.Name], rates[a.Name])
	},
	"lag": func(a, b diagnose.Job, _ map[string]float64) int {
		x, _ := a.Lag()
		y, _ := b.Lag()
		return cmp.Compare(y, x)
	},
	"backlog": func(a, b diagnose.Job, _ map[string]float64) int { return cmp.Compare(waiting(b), waiting(a)) },
}

func startedLast(j diagnose.Job) time.Time {
	if j.LastRun == nil {
		return time.Time{}
	}
	return j.LastRun.Started
}

func tookLast(j diagnose.Job) int64 {
	if j.LastRun == nil {
		return -1
	}
	return j.LastRun.Duration.Milliseconds()
}

func waiting(j diagnose.Job) int64 {
	if j.Backlog == nil {
		return -1
	}
	return *j.Backlog
}

// filterOf reads a filter from the query of a page. It ignores invalid values.
func filterOf(q url.Values) jobFilter {
	f := jobFilter{Find: strings.TrimSpace(q.Get("find")), All: q.Get("jobs") == "all"}
	if len(f.Find) > mostFind {
		f.Find = ""
	}
	for _, s := range shows {
		if s.name == q.Get("show") {
			f.Show = s.name
		}
	}
	if _, ok := sorts[q.Get("sort")]; ok {
		f.Sort = q.Get("sort")
	}
	return f
}

// values returns the query parameters of the filter.
func (f jobFilter) values() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"find": f.Find, "show": f.Show, "sort": f.Sort} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.All {
		q.Set("jobs", "all")
	}
	return q
}

// url returns the address of the start page with this filter.
func (f jobFilter) url() string {
	if q := f.values().Encode(); q != "" {
		return "/?" + q
	}
	return "/"
}

// has reports whether the name, target, lock or store of a job contains the text f.Find.
func (f jobFilter) has(j diagnose.Job) bool {
	find := strings.ToLower(f.Find)
	return find == "" || slices.ContainsFunc([]string{j.Name, j.Target, j.Lock, j.Store}, func(s string) bool {
		return strings.Contains(strings.ToLower(s), find)
	})
}

// order returns the jobs sorted by the column f.Sort. Jobs with equal values keep the order of the configuration, so that their rows do not
// change places.
func (f jobFilter) order(jobs []diagnose.Job, rates map[string]float64, now time.Time, cut bool) []diagnose.Job {
	by := sorts[f.Sort]
	if by == nil {
		return worstFirst(jobs, now, cut)
	}
	jobs = slices.Clone(jobs)
	slices.SortStableFunc(jobs, func(a, b diagnose.Job) int { return by(a, b, rates) })
	return jobs
}

// filterView contains the controls above the list of jobs.
type filterView struct {
	jobFilter
	Kinds   []kindView
	Columns []columnView
	None    string // the message if the filter selects no job
	Reset   string
}

// kindView is a kind of jobs that the user can choose.
type kindView struct {
	Label, URL, Count string
	Current           bool
}

// columnView is the head of a column. It is a link that sorts the jobs by the column.
type columnView struct {
	Label, URL string // an empty URL means that the jobs cannot be sorted by the column
	Right      bool
	Order      string // aria-sort; "" if the jobs are sorted by another column
}

// newFilterView returns the controls above the list of jobs, with the number of jobs of each kind.
func newFilterView(f jobFilter, jobs []diagnose.Job, now time.Time) filterView {
	v := filterView{jobFilter: f, Reset: jobFilter{Sort: f.Sort}.url()}
	kind := func(name, label string, n int) {
		to := f
		to.Show, to.All = name, false
		v.Kinds = append(v.Kinds, kindView{label, to.url(), text.Number(n), f.Show == name})
	}
	kind("", "All", len(jobs))
	for _, s := range shows {
		n := 0
		for _, j := range jobs {
			if s.is(j, now) {
				n++
			}
		}
		if n > 0 && n < len(jobs) || f.Show == s.name || s.name == "trouble" && n > 0 {
			kind(s.name, s.label, n)
		}
	}
	for _, c := range []struct{ label, sort, order string }{
		{"Job", "name", "ascending"}, {"Schedule", "", ""}, {"Next run", "next", "ascending"}, {"Last run", "last", "descending"},
		{"Last 30 runs", "took", "descending"}, {"Rows/s", "rows", "descending"}, {"Lag", "lag", "descending"},
		{"Backlog", "backlog", "descending"},
	} {
		col := columnView{Label: c.label, Right: c.sort == "rows" || c.sort == "lag" || c.sort == "backlog"}
		if c.sort != "" {
			to := f
			to.Sort = c.sort
			if f.Sort == c.sort { // a second click restores the default order
				to.Sort, col.Order = "", c.order
			}
			col.URL = to.url()
		}
		v.Columns = append(v.Columns, col)
	}
	return v
}

// chosen returns the jobs that the filter selects, sorted and cut to the maximum number. The result all is the number of selected jobs
// before the cut.
func (f jobFilter) chosen(jobs []diagnose.Job, rates map[string]float64, now time.Time) (shown []diagnose.Job, all int) {
	for _, j := range jobs {
		if f.has(j) && f.is(j, now) {
			shown = append(shown, j)
		}
	}
	all = len(shown)
	cut := !f.All && all > manyJobs
	shown = f.order(shown, rates, now, cut)
	if cut {
		shown = shown[:manyJobs]
	}
	return shown, all
}

func (f jobFilter) is(j diagnose.Job, now time.Time) bool {
	for _, s := range shows {
		if s.name == f.Show {
			return s.is(j, now)
		}
	}
	return true
}

// ratesNow returns the rate of each job in the latest samples, in rows per second.
func ratesNow(samples []operate.Sample, now time.Time) map[string]float64 {
	rates := map[string]float64{}
	for _, s := range samples {
		if now.Sub(s.At) > gapAfter || s.At.After(now.Add(time.Minute)) {
			continue
		}
		for name, level := range s.Jobs {
			if level.RowsPerSecond != nil {
				rates[name] = *level.RowsPerSecond
			}
		}
	}
	return rates
}
