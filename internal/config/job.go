package config

import (
	"time"

	"baton/internal/notify/service"
)

// Policy says when a job starts, and how its runs are treated. A job's own settings override the defaults.
type Policy struct {
	// TimeZone is the IANA name of the schedules' time zone. Default: UTC.
	TimeZone string `yaml:"time_zone"`
	// CatchUp says what happens to slots that passed while no node led: "latest" runs only the last slot, "all" runs every slot, "none"
	// waits for the next slot. Default: latest.
	CatchUp string `yaml:"catch_up"`
	// StartingDeadline is how long after its slot a run may still start; a slot
	// older than that is counted as missed. Default: none, the latest slot always runs.
	StartingDeadline time.Duration `yaml:"starting_deadline,omitempty"`
	// Overlap says what happens to a slot while an earlier run is in progress: "forbid" skips the slot, "queue_one" runs it afterwards,
	// "replace" ends the earlier run, "allow" runs both. A flush cannot run twice at a time. Default: forbid.
	Overlap string `yaml:"overlap"`
	// MaxOverlap is the maximum number of runs of the job at a time if overlap is "allow", 2 or more; a further slot is skipped. Default:
	// any number.
	MaxOverlap int `yaml:"max_overlap,omitempty" config:"several"`
	// OnLost says what happens to a run that was lost with its node: "skip" drops the run, "rerun" runs it again on the next leader, which
	// may repeat work. A later slot that is due by then replaces the rerun, unless catch_up is "all". Default: skip.
	OnLost string `yaml:"on_lost"`
	// Jitter spreads starts: a job starts later than its slots by a part of this time, which is always the same for the job. Default: none.
	Jitter time.Duration `yaml:"jitter,omitempty"`
	// Timeout ends a run that takes longer. Default: 1h.
	Timeout time.Duration `yaml:"timeout"`
	// Grace is the time between SIGTERM and SIGKILL for a command that must end; the lease may make it shorter. Default: 10s.
	Grace time.Duration `yaml:"grace"`
	// Retry is what happens to a run that failed.
	Retry Retry `yaml:"retry,omitempty"`
	// LateAfter is the time in which a job must succeed after a slot; otherwise the job counts as late. Default: never.
	LateAfter time.Duration `yaml:"late_after,omitempty"`
}

// Retry repeats failed runs, under any leader, until the next slot is due.
type Retry struct {
	// Limit is how often a failed run is repeated. Default: never.
	Limit int `yaml:"limit,omitempty" config:"positive"`
	// Delay is the time before the first retry; it doubles for each further retry, and varies
	// by a fifth. Default: 10s.
	Delay time.Duration `yaml:"delay,omitempty"`
	// MaxDelay is the maximum of delay. Default: 10m.
	MaxDelay time.Duration `yaml:"max_delay,omitempty"`
}

// History limits the entries about each job's runs that are kept.
type History struct {
	// Keep is the maximum number of entries of a job. Default: 200.
	Keep int `yaml:"keep" config:"positive"`
	// MaxAge is how long an entry is kept. Default: 720h, 30 days.
	MaxAge time.Duration `yaml:"max_age"`
}

// Job is some scheduled work: a flush or a command.
type Job struct {
	// Name identifies the job for ever: its fence and its history have this name. Lower-case letters, digits and dashes, at most 63.
	// Required, unique.
	Name string `yaml:"name"`
	// Schedule is five-field cron, "@hourly" and the like, "@every 5s" or "@always". Required.
	Schedule string `yaml:"schedule"`
	// Lock is the Redis key of a separate lock, so that another host may lead this job; jobs may share a lock. Default: election.lock_key.
	Lock string `yaml:"lock,omitempty"`
	// Policy is as in defaults, which complete it.
	Policy `yaml:",inline"`
	// DeadMansSwitch gets an HTTP request after every run that has succeeded, so that its receiver notices if no run succeeds.
	DeadMansSwitch *Webhook `yaml:"dead_mans_switch,omitempty"`

	// Flush moves data from Redis into a table. This or command is required.
	Flush Flush `yaml:"flush,omitempty"`
	// Command is a program and its arguments; with shell: true one text for /bin/sh -c.
	// This or flush is required.
	Command Command `yaml:"command,omitempty"`
	// Shell is true to make /bin/sh run the command, which is one text then. Default: false.
	Shell bool `yaml:"shell,omitempty"`
	// WorkingDir is the directory that a command runs in. Default: the daemon's, / under systemd.
	WorkingDir string `yaml:"working_dir,omitempty"`
	// Env adds variables to the daemon's environment for the command. Default: none.
	Env map[string]string `yaml:"env,omitempty"`
	// EnvFile is a file of NAME=VALUE lines, read before every run; Env overrides it. Default: none.
	EnvFile string `yaml:"env_file,omitempty" config:"expand"`
	// Secrets are environment variables whose values are in files of one line, read before every run. They are removed from the
	// command's output. Default: none.
	Secrets map[string]string `yaml:"secrets,omitempty" config:"expand"`

	// Stdin is a file that the command reads as its standard input. Default: none, there is nothing
	// to read.
	Stdin string `yaml:"stdin,omitempty"`
	// LogFile is a file for the command's output, without secrets. baton appends to it, and creates it again after a rotation has moved
	// it away. Default: none.
	LogFile string `yaml:"log_file,omitempty"`
	// SuccessExitCodes are the exit codes beside 0 that mean success. Default: none.
	SuccessExitCodes []int `yaml:"success_exit_codes,omitempty"`
	// StopSignal is the signal that ends the command and its process group. Default: SIGTERM.
	StopSignal string `yaml:"stop_signal,omitempty"`
	// Umask removes permissions from files that the command makes, in octal, such as 027. Default: the daemon's, 077 under systemd.
	Umask string `yaml:"umask,omitempty"`
	// Nice is the nice value of the command, up to 19: a higher value leaves more processor time to other processes. A value below the
	// daemon's needs CAP_SYS_NICE. Default: the daemon's.
	Nice int `yaml:"nice,omitempty"`
	// Limits are what each process of the command may use.
	Limits Limits `yaml:"limits,omitempty"`
	// User is the user that the command runs as, by name or number, with the groups of that user. It needs the drop-in
	// command-users.conf, or a daemon that runs as root. Default: the daemon's.
	User string `yaml:"user,omitempty"`
	// Group is the command's group, by name or number. Default: the user's.
	Group string `yaml:"group,omitempty"`
}

// Limits restricts each process of a command: a process that exceeds a limit gets an error, or ends.
type Limits struct {
	// OpenFiles is how many files the process may have open. Default: the daemon's.
	OpenFiles int `yaml:"open_files,omitempty" config:"positive"`
	// Processes is how many processes and threads the command's user may have when a process starts another one; the daemon's also count,
	// if the daemon has the same user. Default: the daemon's.
	Processes int `yaml:"processes,omitempty" config:"positive"`
	// AddressSpace is how much memory the process may map, in bytes. Default: the daemon's.
	AddressSpace int `yaml:"address_space,omitempty" config:"positive"`
	// FileSize is the maximum size of a file that the process writes, in bytes. Default: the daemon's.
	FileSize int `yaml:"file_size,omitempty" config:"positive"`
	// CPUTime is how much processor time the process may use, in whole seconds. Default: the daemon's.
	CPUTime time.Duration `yaml:"cpu_time,omitempty"`
}

// StopSignals returns the values of the setting "stop_signal".
func StopSignals() []string {
	return []string{"SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH"}
}

// IsCommand reports whether the job runs a command.
func (j Job) IsCommand() bool { return len(j.Command) > 0 }

// Command is a program and its arguments.
type Command []string

// fromText sets c from a single text, which is a shell command or a program without arguments.
func (c *Command) fromText(s string) { *c = Command{s} }

// Notify sends events to one target. Deliveries are tried again and delay no job.
type Notify struct {
	// Name is the target's name in logs. Required, unique.
	Name string `yaml:"name"`
	// On lists the events to send: failed, recovered, missed, late, dead_letters, leader_changed. Default: all.
	On []string `yaml:"on"`
	// Jobs are the jobs whose events are sent. Default: all jobs.
	Jobs []string `yaml:"jobs,omitempty"`
	// Webhook gets the event as a POST of JSON. This or command is required.
	Webhook *Webhook `yaml:"webhook,omitempty"`
	// Format is the body of the webhook's request: json, which is the event, or a text in the form of the service with that name.
	// Default: json.
	Format string `yaml:"format,omitempty"`
	// Command is the program that gets the JSON on its standard input. This or webhook is required.
	Command Command `yaml:"command,omitempty"`
	// Timeout limits one attempt. Default: 10s.
	Timeout time.Duration `yaml:"timeout"`
	// GiveUpAfter is how long a delivery is tried. Default: 1h.
	GiveUpAfter time.Duration `yaml:"give_up_after"`
}

// Webhook is the target of an HTTP request. In YAML the text alone is short for {url: text}.
type Webhook struct {
	// URL is the address. If it contains a secret, url_file keeps it out of this file. This or url_file is required.
	URL string `yaml:"url,omitempty" config:"expand"`
	// URLFile holds the address, one line, read before every request. This or url is required.
	URLFile string `yaml:"url_file,omitempty" config:"expand"`
	// TokenFile holds the token for Authorization: Bearer, or the token that signs a message to a chat bot. Default: none.
	TokenFile string `yaml:"token_file,omitempty" config:"expand"`
}

// WebhookFormats returns the values of a webhook's format.
func WebhookFormats() []string { return service.Names() }

// fromText sets w from the short form, which is the URL.
func (w *Webhook) fromText(s string) { w.URL = s }

// These are the values of the settings "overlap", "on_lost" and "catch_up".
const (
	OverlapForbid   = "forbid"
	OverlapQueueOne = "queue_one"
	OverlapReplace  = "replace"
	OverlapAllow    = "allow"

	OnLostSkip  = "skip"
	OnLostRerun = "rerun"

	CatchUpNone   = "none"
	CatchUpLatest = "latest"
	CatchUpAll    = "all"
)

// These are the kinds of events that can be notified.
const (
	NotifyFailed        = "failed"
	NotifyRecovered     = "recovered"
	NotifyMissed        = "missed"
	NotifyLate          = "late"
	NotifyDeadLetters   = "dead_letters"
	NotifyLeaderChanged = "leader_changed"
)

// NotifyEvents returns all kinds of events that can be notified.
func NotifyEvents() []string {
	return []string{NotifyFailed, NotifyRecovered, NotifyMissed, NotifyLate, NotifyDeadLetters, NotifyLeaderChanged}
}
