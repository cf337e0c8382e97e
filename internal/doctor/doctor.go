package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/finding"
	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/job/schedule"
	"baton/internal/redisconn"
	"baton/internal/redisledger"
	"baton/internal/redislock"
)

// Finding is one result of Examine.
type Finding = finding.Finding

// Severity says how serious a finding is.
type Severity = finding.Severity

// These are the severities of findings, the gravest first.
const (
	SeverityError   = finding.SeverityError
	SeverityWarning = finding.SeverityWarning
	SeverityInfo    = finding.SeverityInfo
	SeverityOK      = finding.SeverityOK
)

const (
	// examineWithin limits the time for the examination of one server.
	examineWithin = 15 * time.Second
	// abandonAfter is how long an examination may continue after its time is over, so that it can notice this and return. Not every
	// examination can notice it: a system call that waits for a network file system cannot be interrupted.
	abandonAfter = 250 * time.Millisecond
)

// Examine finds problems that lose data or keep a job from working: in the configuration, in Redis, among the nodes, in every database and
// every job's table, and on this host. It changes nothing. All checks run at the same time, and each of them takes 15 seconds at most. The
// result lists the findings in the order of the configuration.
func Examine(ctx context.Context, c config.Config, o Options) []Finding {
	seen := o.Seen
	if seen == nil {
		seen = func(string, bool) {}
	}
	all := examinations(c, o)
	found := make([][]Finding, len(all))
	var wg sync.WaitGroup
	var reporting sync.Mutex
	report := func(subject string, over bool) {
		reporting.Lock()
		defer reporting.Unlock()
		seen(subject, over)
	}
	for i, e := range all {
		report(e.subject, false)
		wg.Go(func() {
			found[i] = e.within(ctx, examineWithin)
			report(e.subject, true)
		})
	}
	wg.Wait()
	return byPlace(slices.Concat(found...), c)
}

// examination is the check of one server and of the jobs that use this server.
type examination struct {
	subject string
	check   func(ctx context.Context) []Finding
}

// within runs the examination and returns its findings. If the examination has not ended after the time d, within waits at most
// abandonAfter longer.
func (e examination) within(ctx context.Context, d time.Duration) []Finding {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	found := make(chan []Finding, 1)
	go func() { found <- e.check(ctx) }() // abandoned if it hangs in the kernel, where no code can end it
	select {
	case f := <-found:
		return f
	case <-ctx.Done():
	}
	select {
	case f := <-found:
		return f
	case <-time.After(abandonAfter):
		return []Finding{finding.Away.Of(e.subject, fmt.Sprintf("it hangs: it could not be checked within %v", d),
			"jobs that need it hang, too; nothing is lost, the changes wait", "check that server, its network and its disks")}
	}
}

// examinations returns all examinations that the configuration needs.
func examinations(c config.Config, o Options) []examination {
	masters := c.Redis.Masters()
	all := []examination{{subjectConfig, func(context.Context) []Finding { return examineConfig(c, o.Self) }}}
	all = append(all, examination{"nodes", func(ctx context.Context) []Finding { return examineNodes(ctx, c, o.Self) }})
	all = append(all, examination{"redis", func(ctx context.Context) []Finding { return examineRedis(ctx, c, len(masters) > 0) }})
	for i, m := range masters {
		of := c
		of.Redis, of.Jobs = m, nil
		subject := fmt.Sprintf("redis.quorum[%d]", i)
		all = append(all, examination{subject, func(ctx context.Context) []Finding {
			return examineStore(ctx, of, redisconn.PreflightOptions{Subject: subject, Section: subject, LockKey: c.Election.LockKey}, nil)
		}})
	}
	for _, r := range c.AllStores()[1:] {
		if jobs := flushesOf(c, r.StoreName); len(jobs) > 0 {
			subject := storeSubject(r.StoreName)
			all = append(all, examination{subject, func(ctx context.Context) []Finding {
				of := c
				of.Redis = r
				return examineStore(ctx, of, redisconn.PreflightOptions{Subject: subject, Section: r.At(""), Data: true, Store: true}, jobs)
			}})
		}
	}
	all = append(all, examination{"fences", func(ctx context.Context) []Finding { return examineFences(ctx, c) }})
	all = append(all, examination{subjectHost, func(context.Context) []Finding { return append(examineMachine(c, o), examineHost(c)...) }})
	all = append(all, examination{"files", func(context.Context) []Finding { return examineFiles(c, o) }})
	if o.Unit != "" {
		all = append(all, examination{unitSubject(o.Unit), func(ctx context.Context) []Finding { return examineUnit(ctx, c, o.Unit) }})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Databases)) {
		all = append(all, examination{databaseSubject(name), func(ctx context.Context) []Finding { return examineDatabase(ctx, c, name) }})
	}
	return all
}

// flushesOf returns the flush jobs that read a store.
func flushesOf(c config.Config, store string) []config.Job {
	return slices.DeleteFunc(slices.Clone(c.Jobs), func(j config.Job) bool { return j.IsCommand() || j.Flush.From.Store != store })
}

func storeSubject(name string) string    { return fmt.Sprintf("store %q", name) }
func databaseSubject(name string) string { return fmt.Sprintf("database %q", name) }
func jobSubject(name string) string      { return fmt.Sprintf("job %q", name) }

// examineRedis checks the Redis that contains the data of the jobs. If lockElsewhere is false, this Redis also has the lock.
func examineRedis(ctx context.Context, c config.Config, lockElsewhere bool) []Finding {
	o := redisconn.PreflightOptions{Subject: "redis", LockKey: c.Election.LockKey}
	if lockElsewhere {
		if o.LockKey = ""; len(c.Jobs) == 0 {
			return nil // the configuration does not use this Redis
		}
	}
	flushes := flushesOf(c, "")
	o.Data = len(flushes) > 0
	return examineStore(ctx, c, o, flushes)
}

func examineStore(ctx context.Context, c config.Config, o redisconn.PreflightOptions, jobs []config.Job) []Finding {
	lock := site.LockOptions(c)
	o.WithoutScripts, o.AttemptTimeout = lock.Interpreter != nil, c.Election.AttemptTimeout
	if lock.Key = o.LockKey; lock.Key != "" {
		o.WaitReplicas = lock.WaitReplicas
		access := redislock.Access(lock)
		if slices.ContainsFunc(c.Jobs, func(j config.Job) bool { return !j.IsCommand() }) {
			access.Keys = append(access.Keys, redisledger.Access(lock.Key))
		}
		o.Accesses = append(o.Accesses, access)
	}
	store, err := site.OpenRedis(c)
	if err != nil {
		return []Finding{finding.Unopened.Of(o.Subject, err.Error(), "the node does not start",
			"correct "+c.Redis.At("")+" of the configuration")}
	}
	defer func() { _ = store.Close() }() // no data was written
	if o.Store {                         // a store has no lock, so no lock lists PING among its commands
		o.Accesses = append(o.Accesses, redisconn.Access{
			Keys:        []redisconn.KeyCommands{{Commands: []string{"PING"}}},
			Consequence: "idle connections are opened again, and only the job's runs show that the store is away",
			Shows:       "when it is away",
		})
	}
	for _, j := range jobs {
		if access, err := accessOf(j, store.IsCluster()); err == nil { // examineKeys reports this error as a finding
			o.Accesses = append(o.Accesses, access)
		}
	}
	found, usable := redisconn.Preflight(ctx, store, o)
	for _, j := range jobs {
		if usable {
			found = append(found, examineKeys(ctx, j, store)...)
		}
	}
	for i, f := range found {
		name := c.Redis.StoreName
		found[i].What, found[i].Remedy = site.InStore(name, f.What), site.InStore(name, f.Remedy)
	}
	return found
}

// accessOf returns the commands that a job sends to its Redis. The commands depend on whether this Redis is a Cluster.
func accessOf(j config.Job, cluster bool) (redisconn.Access, error) {
	wait := false
	if s, err := schedule.Parse(j.Schedule, time.UTC); err == nil {
		wait = schedule.IsAlways(s)
	}
	source, err := tasks.Source(j)
	if err != nil {
		return redisconn.Access{}, err
	}
	return source.Access(wait, cluster), nil
}

// examineKeys counts the waiting changes of a job. In this way it also finds keys that have a wrong type.
func examineKeys(ctx context.Context, j config.Job, store *redisconn.Store) []Finding {
	pipeline, err := tasks.Flush(j, store)
	if err == nil {
		var sources []flush.Source
		if sources, err = pipeline.NewSources(nil); err == nil {
			_, err = flush.Backlog(ctx, sources)
		}
	}
	if _, uncounted := errors.AsType[*flush.UncountedError](err); err == nil || uncounted || ctx.Err() != nil {
		return nil
	}
	return []Finding{finding.UnreadableChanges.Of(jobSubject(j.Name), "the waiting changes in Redis cannot be read: "+err.Error(),
		"the job fails; nothing is lost, the changes wait", "correct this key; other programs must not write to baton's keys")}
}

// makesItsTables reports whether at least one job writes to a database, and all jobs that write to it create their tables themselves.
func makesItsTables(jobs []config.Job, database string) bool {
	some := false
	for _, j := range jobs {
		if j.Flush.To.Database != database {
			continue
		}
		if j.Flush.To.Schema != "create" {
			return false
		}
		some = true
	}
	return some
}

// examineDatabase checks a database and the tables that jobs write there.
func examineDatabase(ctx context.Context, c config.Config, name string) []Finding {
	store, err := site.OpenDatabase(c, name)
	if err != nil {
		return []Finding{finding.Unopened.Of(databaseSubject(name), err.Error(), "the node does not start",
			"correct databases."+name+" of the configuration; the file of the dsn must be readable by the user that runs doctor")}
	}
	defer func() { _ = store.Close() }() // no data was written
	found, usable := store.Preflight(ctx, makesItsTables(c.Jobs, name))
	for _, j := range c.Jobs {
		if usable && j.Flush.To.Database == name {
			found = append(found, examineTable(ctx, c, j, store)...)
		}
	}
	return found
}

// examineTable checks whether a job fits its table, in the same way as the job itself does before it flushes.
func examineTable(ctx context.Context, c config.Config, j config.Job, store *sql.Store) []Finding {
	subject := jobSubject(j.Name)
	if other, ok := errors.AsType[*sql.OtherElectionError](store.CheckElection(ctx, j.Name)); ok { // any other error is reported below
		return []Finding{finding.OtherElection.Of(subject,
			fmt.Sprintf("its fence in database %q belongs to lock %q, and election.lock_key is %q",
				j.Flush.To.Database, other.LockKey, other.Ours),
			"the job fails: both would use one fence and one ledger", other.Remedy())}
	}
	plan, err := planOf(ctx, j, c.Node.ID, store)
	switch {
	case errors.Is(err, flush.ErrTransient) || ctx.Err() != nil:
		return []Finding{finding.UncheckedDatabase.Of(subject, fmt.Sprintf("its table could not be checked: %v", err),
			"faults of the table appear at the first flush", "run doctor again")}
	case err != nil:
		return misfits(subject, err)
	}
	// The job makes its table, because planOf otherwise fails without a table.
	if _, err := store.Table(ctx, plan.Table.Name); errors.Is(err, flush.ErrNoTable) {
		return []Finding{finding.JobFits.Of(subject, fmt.Sprintf(
			"table %s of database %q is not there yet: the first flush makes it, and baton job preview %s shows how",
			plan.Table.Name, j.Flush.To.Database, j.Name), "", "")}
	}
	found := append(store.PreflightTable(ctx, preflightTable(j, plan)), resets(j, plan)...)
	found = append(found, unaccepted(ctx, c, j, store)...)
	if !slices.ContainsFunc(found, func(f Finding) bool { return f.Severity.Rank() <= SeverityWarning.Rank() }) {
		found = append(found, finding.JobFits.Of(subject, fmt.Sprintf(
			"table %s of database %q fits; columns written: %d", plan.Table.Name, j.Flush.To.Database, len(plan.Columns)), "", ""))
	}
	return found
}

func planOf(ctx context.Context, j config.Job, nodeID string, sink flush.Sink) (*row.Plan, error) {
	// The pipeline needs a Redis only to open its sources. No source is read, so any address is enough.
	redis, err := redisconn.Open(redisconn.Options{URL: "redis://127.0.0.1:6379"})
	if err != nil {
		return nil, err
	}
	defer func() { _ = redis.Close() }() // it never connects
	of, err := tasks.Flush(j, redis)
	if err != nil {
		return nil, err
	}
	of.NodeID, of.Sink = nodeID, sink
	pipeline, err := flush.New(of)
	if err != nil {
		return nil, err
	}
	return pipeline.Plan(ctx)
}

// misfits returns one finding for each problem that the error err of a mapping contains.
func misfits(subject string, err error) []Finding {
	problems := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok && strings.Contains(err.Error(), "\n") {
		problems = joined.Unwrap()
	}
	var found []Finding
	for _, p := range problems {
		found = append(found, finding.Misfit.Of(subject, p.Error(),
			"the job fails until this is fixed; nothing is lost, the changes wait in Redis until its memory is full",
			"fix the table, or the job in the configuration"))
	}
	return found
}

// preflightTable returns the table that a job writes, with the kinds of changes that the job makes to it.
func preflightTable(j config.Job, plan *row.Plan) sql.PreflightTable {
	t := sql.PreflightTable{Job: j.Name, Plan: plan, Insert: true, Update: len(plan.Key) > 0 && !plan.Keep}
	to := j.Flush.To
	t.Keep = to.KeepDeleted > 0
	switch mapping.Mode(to.Mode) {
	case mapping.ModeReplace:
		t.Delete = true
	case mapping.ModeDelete:
		t.Insert, t.Update, t.Delete = false, false, true
	}
	source, _ := tasks.Source(j) // an error of Source was reported when the configuration was checked
	policy := source.Policy
	gone := policy.OnMissing == mapping.MissingDelete || policy.VanishedPct > 0 && policy.OnMissing != mapping.MissingNull
	t.Delete = t.Delete || gone || len(to.DeleteWhen) > 0
	return t
}
