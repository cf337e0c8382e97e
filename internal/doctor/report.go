package doctor

import (
	"slices"
	"strings"

	"baton/internal/config"
)

// Options say what to check beside the servers.
type Options struct {
	// ConfigFile is the path of the configuration file; "" if there is none.
	ConfigFile string
	// Unit is the systemd unit of baton on this host, to be checked; [UnitOf] returns the one of
	// the packages. A daemon leaves it empty, since it may lack the right to query systemd.
	Unit string
	// Self is set by a node that checks itself. It passes only the part of its configuration
	// under one lock, so checks that need the whole configuration are left out. The jobs that
	// it runs are not compared with that part.
	Self bool
	// Getenv reads the environment; nil stands for an empty one.
	Getenv func(name string) (string, bool)
	// Seen, if set, is called when a check begins, and when it is over.
	Seen func(subject string, over bool)
}

func (o Options) env(name string) string {
	if o.Getenv == nil {
		return ""
	}
	value, _ := o.Getenv(name)
	return value
}

// Report is findings, and how many are errors and warnings.
type Report struct {
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Findings []Finding `json:"findings"`
}

// ReportOf counts findings.
func ReportOf(all []Finding) Report {
	r := Report{Findings: all}
	for _, f := range all {
		switch f.Severity {
		case SeverityError:
			r.Errors++
		case SeverityWarning:
			r.Warnings++
		}
	}
	return r
}

// report collects findings of one subject at a time.
type report struct {
	subject  string
	findings []Finding
}

func (r *report) add(severity Severity, what, consequence, remedy string) {
	r.findings = append(r.findings, Finding{Severity: severity, Subject: r.subject, What: what, Consequence: consequence, Remedy: remedy})
}

// grave reports whether there is anything worse than worth knowing.
func (r *report) grave() bool {
	return slices.ContainsFunc(r.findings, func(f Finding) bool { return f.Severity.Rank() < SeverityInfo.Rank() })
}

const (
	subjectConfig = "configuration"
	subjectHost   = "host"
)

func unitSubject(name string) string { return "unit " + name }

// byPlace sorts findings by subject, and jobs in the order of the configuration.
func byPlace(all []Finding, c config.Config) []Finding {
	first := []string{subjectConfig, "redis", "store ", "node ", "database", subjectHost, "unit ", "file ", "notification"}
	place := func(f Finding) int {
		if i := slices.IndexFunc(first, func(prefix string) bool { return strings.HasPrefix(f.Subject, prefix) }); i >= 0 {
			return i - len(first)
		}
		return slices.IndexFunc(c.Jobs, func(j config.Job) bool { return strings.HasPrefix(f.Subject, jobSubject(j.Name)) })
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return place(a) - place(b) })
	return all
}
