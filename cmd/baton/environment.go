package main

import (
	"fmt"
	"strings"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/config"
	"baton/internal/trace"
)

// environmentHelp returns the help text about the environment variables that baton reads.
func environmentHelp() string {
	var b strings.Builder
	b.WriteString("Flags override environment variables, which override the configuration file.\n" +
		"An empty variable counts as not set.\n\n")
	row := func(variable, flag, path string) {
		b.WriteString(strings.TrimRight(fmt.Sprintf("  %-26s %-22s %s", variable, flag, path), " ") + "\n")
	}
	row("VARIABLE", "FLAG", "IN THE FILE")
	row(cmdline.ConfigEnv, "--config", "")
	row(cmdline.ServerEnv, "--server", "")
	row(cmdline.TokenFileEnv, "--token-file", "")
	row(cmdline.CaFileEnv, "--ca-file", "")
	row("NO_COLOR", "--color never", "")
	for _, s := range config.Settings() {
		row(s.Env, "--"+s.Flag, s.Path)
	}
	b.WriteString("\nHTTPS_PROXY, HTTP_PROXY and NO_PROXY apply to notifications, traces and\n--server.\n" +
		"\nWith OpenTelemetry's variables baton run sends traces. Those with OTLP in their\n" +
		"name have a form for traces alone, too, which takes precedence:\n" +
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, ...\n\n")
	for _, v := range trace.Variables() {
		fmt.Fprintf(&b, "  %-38s %s\n", v.Name, v.Short)
	}
	return strings.TrimRight(b.String(), "\n")
}
