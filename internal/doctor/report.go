package doctor

import (
	"slices"
	"strings"

	"baton/internal/config"
)

// Options say what to check beside the servers.
type Options struct {
	// ConfigFile is what the configuration was read from; "" is nothing.
	ConfigFile string
	// Unit is what systemd runs baton as, here, so that it is checked; [UnitOf] knows which the
	// packages have. A daemon leaves it out: it need not be allowed to ask.
	Unit string
	// Self is set by a node that checks itself: what it runs needs no comparison with a
	// configuration, of which it passes the part under one lock.
	Self bool
	// Getenv reads the environment; nil: there is none.
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

// byPlace sorts findings by what they are about, jobs as the configuration has them.
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
