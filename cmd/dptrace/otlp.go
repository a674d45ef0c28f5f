package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/export/otlp"
	"github.com/dptrace/dptrace/analyze/report"
)

const otlpLong = `Sends a run to an OpenTelemetry backend by OTLP: Collector, Jaeger, Tempo or another.

  traces   one for each batch: a root span with a child for each stage of its way
           (index, index_queue, fetch, collate, result_queue, wait, step), linked
           to the span of its pass; findings are events on the batches that prove them
  logs     each finding, tied to the first batch that proves it
  metrics  share of waiting, duration of the stages (with exemplars that lead to
           traces), batches, queue depth, memory, copy-on-write, losses, findings

Where to is said by OpenTelemetry's own variables: OTEL_EXPORTER_OTLP_ENDPOINT,
_PROTOCOL (grpc, http/protobuf, http/json), _HEADERS, _TIMEOUT, _COMPRESSION,
_CERTIFICATE, _CLIENT_KEY, _CLIENT_CERTIFICATE, _INSECURE, each also with TRACES_,
METRICS_ or LOGS_ before it; OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES;
OTEL_TRACES_EXPORTER=none (METRICS, LOGS) leaves that kind out. Without any it is
http/protobuf to https://localhost:4318: for a Collector without TLS name its
http:// address.

Ids are made of the run: who sends a trace twice sends the same spans twice, and
what had not arrived before is complete afterwards.

Several traces are the parts of one run, recorded on several nodes or for each
rank. Without argument it takes the newest dptrace-*.dptrace of this folder and
the others of the same run.

Exit code: 0 delivered; 1 not all of it was; 2 wrong usage; 3 the trace is
unreadable (nothing is sent) or incomplete (what is there is sent).`

// otlpOptions are the flags of export otlp.
type otlpOptions struct {
	otlp.Options
	endpoint, protocol string
	oneRun, quiet      bool
}

// exitUndelivered is the exit code where a server did not take all that was sent.
const exitUndelivered = 1

func newExportOTLP() *cobra.Command {
	var o otlpOptions
	cmd := &cobra.Command{
		Use:   "otlp [flags] [TRACE...]",
		Short: "Batches as traces, findings as logs, and metrics, for OpenTelemetry backends",
		Long:  otlpLong,
		Example: `  OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 dptrace export otlp night.dptrace
  dptrace export otlp --endpoint http://localhost:4317 --protocol grpc --sample 0.01 night.dptrace`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Sample < 0 || o.Sample > 1 {
				return fmt.Errorf("export otlp: --sample %g: it is a part of the batches, from 0 to 1", o.Sample)
			}
			if err := o.environ(); err != nil {
				return err
			}
			paths, err := named(args)
			if err == nil {
				err = sendRun(cmd, paths, o)
			}
			return prefixed("export", err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.endpoint, "endpoint", "", "URL to send to, in the place of OTEL_EXPORTER_OTLP_ENDPOINT")
	f.StringVar(&o.protocol, "protocol", "", "grpc, http/protobuf or http/json, in the place of OTEL_EXPORTER_OTLP_PROTOCOL")
	f.Float64Var(&o.Sample, "sample", 1, "part of the batches to send; slow ones and those that prove a finding are sent always")
	f.DurationVar(&o.Patience, "patience", time.Minute, "how long to repeat what does not arrive")
	oneRunFlag(cmd, &o.oneRun)
	quietFlag(cmd, &o.quiet)
	return cmd
}

// environ hands flags to the clients, which read variables.
func (o *otlpOptions) environ() error {
	for name, value := range map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": o.endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": o.protocol} {
		if value == "" {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("export otlp: %w", err)
		}
	}
	if err := otlp.Check(); err != nil {
		return fmt.Errorf("export otlp: %w", err)
	}
	return nil
}

func sendRun(cmd *cobra.Command, paths []string, o otlpOptions) error {
	stderr := cmd.ErrOrStderr()
	run, err := openRun(stderr, paths, o.oneRun)
	if err != nil {
		return err
	}
	job := beginSending(stderr, o.quiet)
	defer job.end()
	job.reading(run.Progress())
	result, err := analyze.Run(run, analyze.Rules, otlp.Sources...)
	if err != nil {
		return &exit{code: exitIncomplete, err: err}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o.Version, o.Arrived = version(), new(atomic.Int64)
	job.sending(o.Arrived)
	var told *otlp.Told
	err = guarded("export otlp", func() (err error) { told, err = otlp.Send(ctx, result, o.Options); return err })
	job.done()
	if told != nil && (!o.quiet || !told.Complete()) {
		for _, line := range told.Lines() {
			tell(stderr, line)
		}
	}
	if err != nil {
		return &exit{code: exitIncomplete, err: err}
	}
	incomplete := report.Incomplete(result)
	for _, line := range incomplete {
		warn(stderr, line)
	}
	switch {
	case !told.Complete():
		tell(stderr, "the trace has it all: the same command sends it again, and nothing twice")
		return &exit{code: exitUndelivered}
	case len(incomplete) > 0:
		return &exit{code: exitIncomplete}
	}
	return nil
}
