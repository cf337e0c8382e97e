package config

import (
	"reflect"
	"strings"
	"time"

	"baton/internal/text"
)

// longest is the maximum length of a duration. A longer duration is most likely a typing error.
const longest = 366 * 24 * time.Hour

// policy checks the defaults, or the policy of a job that was completed from the defaults. A problem of a value from the defaults is
// reported only for the defaults.
func (v *validator) policy(path string, p Policy) {
	v.zone(v.whose(path, "time_zone"), p.TimeZone)
	v.choice(v.whose(path, "catch_up"), p.CatchUp, CatchUpLatest, CatchUpAll, CatchUpNone)
	v.choice(v.whose(path, "overlap"), p.Overlap, OverlapForbid, OverlapQueueOne, OverlapReplace, OverlapAllow)
	v.choice(v.whose(path, "on_lost"), p.OnLost, OnLostSkip, OnLostRerun)
	if p.OnLost == OnLostRerun && p.Overlap == OverlapAllow {
		v.fail(v.whose(path, "on_lost"),
			"with overlap: allow several runs may be lost at a time, and only one could be run again; write on_lost: skip, or "+
				"another overlap")
	}
	if p.MaxOverlap < 0 || p.MaxOverlap == 1 {
		v.fail(v.whose(path, "max_overlap"),
			"%d: must be 2 or more; leave it out for any number, or set overlap: forbid for one", p.MaxOverlap)
	}
	v.retry(path, p)
	for key, d := range map[string]time.Duration{
		"starting_deadline": p.StartingDeadline, "jitter": p.Jitter, "timeout": p.Timeout, "grace": p.Grace, "late_after": p.LateAfter,
	} {
		if d > longest {
			v.fail(v.whose(path, key), "%s is more than a year", text.Exact(d))
		}
	}
	if p.StartingDeadline > 0 && p.Jitter >= p.StartingDeadline {
		v.fail(v.whose(path, "starting_deadline"), "%s is not more than the jitter, %s, so a start may come too late "+
			"to be made; raise it, or lower jitter", text.Exact(p.StartingDeadline), text.Exact(p.Jitter))
	}
	if p.LateAfter > 0 && p.Jitter >= p.LateAfter {
		v.fail(v.whose(path, "late_after"), "%s is not more than the jitter, %s, so the job may be late before it starts; "+
			"raise it, or lower jitter", text.Exact(p.LateAfter), text.Exact(p.Jitter))
	}
}

func (v *validator) retry(path string, p Policy) {
	r := p.Retry
	at := v.whose(path, "retry")
	switch {
	case r.Limit < 0 || r.Limit > 1000:
		v.fail(at+".limit", "%d: must be from 1 to 1000; leave it out for no retry", r.Limit)
	case r.Limit == 0 && (r.Delay > 0 || r.MaxDelay > 0) && v.own(path, p, "retry"):
		v.fail(at, "there is a delay and no limit, so no run is tried again; set limit, or remove retry")
	case r.MaxDelay > 0 && r.Delay > r.MaxDelay:
		v.fail(at+".delay", "%s is more than max_delay, %s", text.Exact(r.Delay), text.Exact(r.MaxDelay))
	case r.Delay > longest, r.MaxDelay > longest:
		v.fail(at, "a delay of more than a year")
	}
}

// own reports whether a job itself sets a value that differs from the defaults.
func (v *validator) own(path string, p Policy, key string) bool {
	_, set := v.places[path+"."+key]
	mine, _, _ := fieldNamed(reflect.ValueOf(p), key)
	common, _, _ := fieldNamed(reflect.ValueOf(v.Defaults), key)
	return set && path != "defaults" && mine.Interface() != common.Interface()
}

// whose returns the path where a value of a job's policy is set: in the job, or in the defaults.
func (v *validator) whose(path, key string) string {
	own, common := path+"."+key, "defaults."+key
	if _, set := v.places[own]; set || path == "defaults" {
		return own
	}
	if _, set := v.places[common]; set {
		return common
	}
	return own
}

// pace checks that the settings of a job fit its schedule.
func (v *validator) pace(path string, j Job, checks Checks) {
	if j.always() {
		v.paceless(path, j)
		return
	}
	if j.Overlap != OverlapAllow && v.own(path, j.Policy, "max_overlap") {
		v.fail(path+".max_overlap", "only with overlap: allow, because other values allow one run at a time; remove it, or "+
			"set overlap: allow")
	}
	spread, tried := j.Jitter > 0, j.Retry.Limit > 0 && v.own(path, j.Policy, "retry")
	every := strings.HasPrefix(strings.TrimSpace(j.Schedule), "@every")
	if checks.Interval == nil || !spread && !tried && !every {
		return // for a cron line the check needs milliseconds, and there may be thousands of lines
	}
	interval := checks.Interval(j.Schedule, j.TimeZone)
	if interval <= 0 {
		return // already reported as a problem of the schedule
	}
	if every && interval >= time.Hour && v.own(path, j.Policy, "time_zone") && j.TimeZone != time.UTC.String() {
		v.fail(path+".time_zone", "@every counts from 1970 in UTC, whatever the zone; "+
			"for fixed times of the day write a cron schedule, such as \"0 */6 * * *\", or remove it")
	}
	switch {
	case j.Jitter < interval:
	case v.own(path, j.Policy, "jitter"):
		v.fail(path+".jitter", "%s is not less than the time between two slots, %s; lower it", text.Exact(j.Jitter), text.Exact(interval))
	default:
		v.fail(path+".schedule", "two slots are %s apart, and the jitter of defaults, %s, is not less; "+
			"give this job a smaller jitter of its own", text.Exact(interval), text.Exact(j.Jitter))
	}
	if tried && j.Retry.Delay >= interval {
		v.fail(path+".retry", "the first retry is after %s, but the next slot comes after %s and takes its place; "+
			"lower delay, or remove retry", text.Exact(j.Retry.Delay), text.Exact(interval))
	}
}

// paceless rejects settings that have no meaning for a job that runs all the time, because such a job has no slots and no end.
func (v *validator) paceless(path string, j Job) {
	for _, key := range []string{"timeout", "catch_up", "starting_deadline", "jitter", "retry", "late_after", "on_lost", "max_overlap"} {
		if v.own(path, j.Policy, key) {
			v.fail(path+"."+key, "not with @always: it has no slots, runs for as long as its node leads, "+
				"and is started again whenever it ends; remove it")
		}
	}
	if j.DeadMansSwitch != nil {
		v.fail(path+".dead_mans_switch", "not with @always: it gets a request after each success, and this run does not end; remove it")
	}
}

// always reports whether the job runs all the time.
func (j Job) always() bool { return strings.TrimSpace(j.Schedule) == "@always" }
