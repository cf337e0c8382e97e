// Package config is baton's configuration: one YAML file, overlaid by
// environment variables and flags.
//
//	file ── Load ──► Config ── Overlay(environment) ── Overlay(flags) ── WithDefaults ── Validate
//
// Read does all of it and is the function for commands. It returns every problem at once, each at its place, so that an operator can mend
// a file in one go:
//
//	baton.yaml:12:5: jobs[1].schedule: ...
//	--ttl: election.ttl: ...
//
// Nothing is guessed and nothing is skipped: a key that this version does not
// know is an error, and so is one that a later version may know. Values of secret
// fields never appear in a problem, in Show or in Hash.
//
// The package knows neither Redis nor SQL nor cron: checks that need the owner of a language (a schedule, a key pattern) come in through
// Checks.
package config
