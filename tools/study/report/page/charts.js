// What the page draws for one section: every chart with its title, its axis, a sentence on how to read it, its data.
// A chart whose data was not recorded is not in the list.
//
// A card: {place: "bars" | "flows" | "time", title, axis, how, make(host, context) -> chart, csv() -> [head, rows],
//          switches: null or [label, ...] with make called again with context.choice}
'use strict';

class SectionCharts {
  constructor(section, algorithms) {
    this.section = section;
    this.algorithms = algorithms;
    this.runs = (section.results.runs ?? []).filter((run) => run && typeof run === 'object');
    this.names = algorithms.map((a) => a.name).filter((name) => this.runs.some((run) => run.algorithm === name));
    this.unit =
        Format.timeUnit(Math.max(0, ...section.series.map((s) => s.queue.x.at(-1) ?? s.total_rate.x.at(-1) ?? 0)));
  }

  style(name) {
    return this.algorithms.find((a) => a.name === name) ?? {name, colour: 0, dash: 0};
  }

  runsOf(name) {
    return this.runs.filter((run) => run.algorithm === name);
  }

  cards() {
    return [
      this.ratio(), this.loss(), this.queueBars(), this.victims(), ...this.distributions(), this.bySize(),
      ...this.overTime()
    ].filter((card) => card !== null);
  }

  // --- bars ---

  bars(title, axis, how, csv, options, rowOf) {
    const rows = this.names.map((name) => ({...this.style(name), ...rowOf(this.runsOf(name))}))
                     .filter((row) => row.bars !== undefined);
    if (rows.length === 0) return null;
    return {place: 'bars', title, axis, how, csv, make: (host) => new BarChart(host, {...options, rows})};
  }

  columns(...paths) {
    const at = (run, path) => path.split('.').reduce((value, key) => value?.[key], run);
    return () => [
               ['algorithm', 'seed', ...paths],
               this.runs.map((run) => [run.algorithm, run.seed, ...paths.map((path) => at(run, path))])];
  }

  static mean(values) {
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  }

  static numbers(runs, read) {
    return runs.map(read).filter((value) => typeof value === 'number' && Number.isFinite(value));
  }

  ratio() {
    return this.bars(
        'Time lost against the ideal', 'completion over the ideal one, in % of the ideal',
        'Shorter is better; no bar means that the busiest link never idled.' +
            (this.severalSeeds() ? ' A dot is one seed.' : ''),
        this.columns('completion_us', 'ideal_us', 'ratio'),
        {low: 0, high: 1, tick: (value) => (value === 0 ? 'ideal' : `${value > 0 ? '+' : ''}${Format.tick(value)} %`)},
        (runs) => {
          const done = runs.filter((run) => !(run.finished < run.flows) && !run.missed_deadline);
          const ratios = SectionCharts.numbers(done, (run) => run.ratio);
          if (done.length < runs.length) {
            return {
              bars: [],
              dots: [],
              value: 'unfinished',
              below: `${runs.length - done.length} of ${runs.length} runs`
            };
          }
          if (ratios.length === 0) return {};
          const mean = SectionCharts.mean(ratios);
          return {
            bars: [{from: 0, to: (mean - 1) * 100}],
            dots: ratios.length > 1 ? ratios.map((r) => (r - 1) * 100) : [],
            value: `${Format.ratio(mean)} \u00d7`
          };
        });
  }

  loss() {
    return this.bars(
        'Packets lost to full queues', 'dropped (full) and trimmed (hatched), in % of the data packets needed',
        'Each lost packet crosses part of the fabric for nothing and must be sent again.',
        this.columns('packets', 'drops', 'trims', 'retransmits', 'fault_losses'),
        {low: 0, high: 0.1, tick: (value) => `${Format.tick(value)} %`}, (runs) => {
          const share = (key) => SectionCharts.numbers(runs, (run) => 100 * (run[key] ?? 0) / run.packets);
          const drops = share('drops');
          const trims = share('trims');
          if (drops.length === 0) return {};
          const dropped = SectionCharts.mean(drops);
          const trimmed = SectionCharts.mean(trims);
          const count = SectionCharts.mean(runs.map((run) => (run.drops ?? 0) + (run.trims ?? 0)));
          return {
            bars: [
              {from: 0, to: dropped, title: 'dropped'},
              {from: dropped, to: dropped + trimmed, style: 'hatched', title: 'trimmed'}
            ],
            dots: drops.length > 1 && count > 0 ? drops.map((value, i) => value + trims[i]) : [],
            value: count === 0 ? 'none' : `${Format.number(dropped + trimmed)} %`,
            below: count === 0 ? null : `${Format.number(Math.round(count))} packets`
          };
        });
  }

  queueBars() {
    const limit = this.section.limits.queue_bytes;
    return this.bars(
        'Longest queue',
        `KB; of any port (light) and of the ports towards hosts (full)${this.severalSeeds() ? '; worst seed' : ''}`,
        (limit ? `The red line is the queue's limit, ${Format.number(limit / 1000)} KB. ` : '') +
            'A short queue means low delay and room for what comes unannounced.',
        this.columns('queue_max_bytes', 'queue_last_hop_max_bytes', 'queue_p99_bytes'), {
          low: 0,
          high: 1,
          tick: (value) => Format.tick(value),
          limit: limit ? {value: limit / 1000, name: 'queue limit'} : null
        },
        (runs) => {
          const any = SectionCharts.numbers(runs, (run) => run.queue_max_bytes / 1000);
          const last = SectionCharts.numbers(runs, (run) => run.queue_last_hop_max_bytes / 1000);
          if (any.length === 0 || last.length === 0) return {};
          const worst = Math.max(...any);
          return {
            bars: [
              {from: 0, to: worst, lane: 0, style: 'light', title: 'any port'},
              {from: 0, to: Math.max(...last), lane: 1, title: 'towards hosts'}
            ],
            dots: [],
            value: `${Format.number(worst)} KB`,
            below: `${Format.number(Math.max(...last))} towards hosts`
          };
        });
  }

  victims() {
    if (!this.runs.some((run) => run.victim_fct_us && run.victim_alone_fct_us)) return null;
    return this.bars(
        'Victims beside the incast',
        'their completion time over that of the same flows alone, in %; mean (full) and p99 (light)',
        'Zero means that flows which only share the fabric with the incast do not feel it.',
        this.columns('victim_fct_us.mean', 'victim_alone_fct_us.mean', 'victim_fct_us.p99', 'victim_alone_fct_us.p99'),
        {low: 0, high: 1, tick: (value) => `${value > 0 ? '+' : ''}${Format.tick(value)} %`}, (runs) => {
          const over = (key) => SectionCharts.numbers(
              runs, (run) => 100 * (run.victim_fct_us?.[key] / run.victim_alone_fct_us?.[key] - 1));
          if (over('mean').length === 0) return {};
          const mean = SectionCharts.mean(over('mean'));
          const tail = over('p99').length > 0 ? SectionCharts.mean(over('p99')) : mean;
          return {
            bars: [
              {from: 0, to: mean, lane: 0, title: 'mean'}, {from: 0, to: tail, lane: 1, style: 'light', title: 'p99'}
            ],
            dots: [],
            value: `${Format.ratio(1 + mean / 100)} \u00d7`,
            below: `p99 ${Format.ratio(1 + tail / 100)}`
          };
        });
  }

  // --- distributions ---

  distributions() {
    const time = Format.timeUnit(Math.max(0, ...Object.values(this.section.fct).map((d) => d.x[d.x.length - 1])));
    const pooled = this.severalSeeds() ? ' All seeds together.' : '';
    return [
      this.distribution(
          'fct', 'Flow completion time', {
            label: `flow completion time (${time.name})`,
            column: 'fct_us',
            tick: (value) => Format.tick(value / time.divisor),
            format: (value) => `${Format.number(value / time.divisor)} ${time.name}`,
          },
          'A curve further left is faster, a steeper one treats flows more alike.' + pooled),
      this.distribution(
          'slowdown', 'Slowdown', {
            label: 'slowdown (\u00d7)',
            column: 'slowdown',
            tick: (value) => Format.tick(value),
            format: (value) => `${Format.number(value)} \u00d7`,
          },
          'Completion time over that of the same flow alone: at 1 it ran as if the fabric were empty.' + pooled),
    ];
  }

  distribution(key, title, x, how) {
    const found = this.section[key];
    const names = this.names.filter((name) => Object.hasOwn(found, name));
    if (names.length === 0) return null;
    const low = Math.min(...names.map((name) => found[name].x[0]));
    const high = Math.max(...names.map((name) => found[name].x[found[name].x.length - 1]));
    const lines = names.map((name) => ({...this.style(name), x: found[name].x, y: found[name].y}));
    const log = low > 0 && high / low > 20;
    return {
      place: 'flows',
      title,
      how,
      switches: ['CDF', 'Tail'],
      axis: (choice) =>
          (choice === 1 ? 'share of flows above the value, logarithmic' : 'share of flows at or below the value'),
      csv: () => [
          ['algorithm', x.column, 'fraction'],
          names.flatMap((name) => found[name].x.map((value, i) => [name, value, found[name].y[i]]))],
      make: (host, context) => new LineChart(host, {
        x: {...x, label: x.label + (log ? ', logarithmic' : ''), log},
        y: context.choice === 1 ? {log: true, high: 0.9, tick: Format.percent, format: Format.percent} :
                                  {low: 0, high: 1.02, tick: Format.percent, format: Format.percent},
        lines,
        align: context.choice === 1 ? 'tail' : 'cdf',
        hidden: context.hidden,
        onToggle: context.onToggle,
      }),
    };
  }

  bySize() {
    const found = this.section.by_size;
    const names = this.names.filter((name) => Object.hasOwn(found, name));
    if (names.length === 0) return null;
    const sizes = names.flatMap((name) => found[name].bytes);
    const log = Math.min(...sizes) > 0 && Math.max(...sizes) / Math.min(...sizes) > 20;
    const format = (value) =>
        (value >= 1e6 ? `${Format.tick(value / 1e6)} MB` :
             value >= 1e3 ? `${Format.tick(value / 1e3)} KB` :
                            `${Format.tick(value)} B`);
    return {
      place: 'flows',
      title: 'Slowdown by flow size',
      switches: ['p99', 'Median'],
      axis: () => 'slowdown (\u00d7)',
      how: 'Flat is fair; a rise at the left means that short flows wait behind long ones.',
      csv: () => [
          ['algorithm', 'bytes_up_to', 'flows', 'slowdown_p50', 'slowdown_p99'],
          names.flatMap(
              (name) => found[name].bytes.map(
                  (bytes, i) => [name, bytes, found[name].flows[i], found[name].p50[i], found[name].p99[i]]))],
      make: (host, context) => new LineChart(host, {
        x: {label: 'flow size', log, tick: format, format},
        y: {low: 0, format: Format.number},
        lines: names.map((name) => ({
                           ...this.style(name),
                           x: found[name].bytes,
                           y: context.choice === 1 ? found[name].p50 : found[name].p99
                         })),
        align: 'line',
        points: true,
        hidden: context.hidden,
        onToggle: context.onToggle,
      }),
    };
  }

  // --- over time ---

  overTime() {
    const {limits} = this.section;
    const same = this.section.series.every((run) => run.busiest_port !== '' && run.busiest_port === run.last_hop_port);
    const queueHigh = (limits.queue_bytes ?? 0) * 1.08;
    const queue = {
      high: queueHigh,
      tick: (value) => Format.tick(value / 1000),
      format: (value) => `${Format.number(value / 1000)} KB`
    };
    const rate = (high) =>
        ({high: (high ?? 0) * 1.08, tick: Format.tick, format: (value) => `${Format.number(value)} Gb/s`});
    const line = limits.link_gbps ? [{value: limits.link_gbps, name: 'line rate', colour: '--bad'}] : [];
    const ideal =
        limits.ideal_gbps ? [{value: limits.ideal_gbps, name: 'mean rate of an ideal run', colour: '--soft'}] : [];
    const marks =
        `Between the two ECN lines switches mark packets${limits.queue_bytes ? '; at the limit they lose them' : ''}.`;
    return [
      this.faultTimeline(),
      this.timeChart(
          'queue', 'queue_bytes', 'busiest_port',
          same ? 'Queue at the hottest port, the last one before the receiver' : 'Queue at the busiest port',
          'data queue (KB)', queue, this.queueLimits(), marks),
      same ? null :
             this.timeChart(
                 'last_hop_queue', 'queue_bytes', 'last_hop_port', 'Queue at the hottest last hop', 'data queue (KB)',
                 queue, this.queueLimits(),
                 'The port towards the receiver with the longest queue: what its senders sent too early.'),
      this.timeChart(
          'port_rate', 'gbps', 'busiest_port', same ? 'Rate at the hottest port' : 'Rate at the busiest port',
          'wire rate (Gb/s)', rate(limits.link_gbps), line,
          'A dip below the line rate before the end is time that nobody gets back.'),
      same ? null :
             this.timeChart(
                 'last_hop_rate', 'gbps', 'last_hop_port', 'Rate at the hottest last hop', 'wire rate (Gb/s)',
                 rate(limits.link_gbps), line,
                 'What that receiver gets; a dip below the line rate before the end is time lost.'),
      this.timeChart(
          'total_rate', 'gbps', null, 'Delivered by the whole fabric', 'payload (Gb/s)', rate(limits.ideal_gbps), ideal,
          'The earlier a curve falls to zero, the earlier the work was done; a long tail is stragglers.'),
    ];
  }

  // A row for each fault, with the number that its band has in the charts below.
  faultTimeline() {
    const {faults, series} = this.section;
    if (faults.length === 0) return null;
    const runs = series.map((run) => Math.max(run.queue.x.at(-1) ?? 0, run.total_rate.x.at(-1) ?? 0));
    const longest = Math.max(...runs, ...faults.map((fault) => fault.until_us ?? fault.at_us));
    const time = (us) => Format.number(us / this.unit.divisor);
    return {
      place: 'time',
      title: 'Faults',
      axis: () => `time (${this.unit.name})`,
      how: 'What was broken when; its number stands at the top of its band in the charts over time.',
      csv: () => [
          ['fault', 'kind', 'target', 'at_us', 'until_us'],
          faults.map((fault, i) => [i + 1, fault.name, fault.target, fault.at_us, fault.until_us])],
      make: (host) => new BarChart(host, {
        rows: faults.map((fault, i) => ({
                           name: `${i + 1}: ${fault.name}`,
                           bars: [{from: fault.at_us, to: fault.until_us ?? longest, style: 'fault'}],
                           dots: [],
                           value: `${time(fault.at_us)} to ${fault.until_us ? time(fault.until_us) : 'the end'}`,
                           below: fault.target
                         })),
        low: 0,
        high: longest,
        tick: (value) => Format.tick(value / this.unit.divisor)
      }),
    };
  }

  queueLimits() {
    const {limits, marking} = this.section;
    const found = [];
    if (limits.queue_bytes) found.push({value: limits.queue_bytes, name: 'queue limit', colour: '--bad'});
    if (limits.ecn_max_bytes) {
      found.push({value: limits.ecn_max_bytes, name: 'ECN: every packet marked', colour: '--soft'});
      if (limits.ecn_min_bytes)
        found.push({value: limits.ecn_min_bytes, name: 'ECN: marking starts', colour: '--soft'});
    }
    for (const [name, own] of Object.entries(marking)) {
      const colour = `--series-${this.style(name).colour}`;
      if (own.ecn_max_bytes) found.push({value: own.ecn_max_bytes, name: `${name}: all marked`, colour, owner: name});
      if (own.ecn_min_bytes)
        found.push({value: own.ecn_min_bytes, name: `${name}: marking starts`, colour, owner: name});
    }
    return found;
  }

  timeChart(key, column, port, title, axis, y, limits, how) {
    const recorded = this.section.series.filter((run) => run[key].x.length > 0);
    if (recorded.length === 0) return null;
    return {
      place: 'time',
      title,
      axis: () => axis,
      ports: port,
      limits,
      how: (seed) => how + (port ? this.portNote(recorded.filter((run) => run.seed === seed), port) : ''),
      csv: (seed) => [
          ['algorithm', 'seed', ...(port ? ['port'] : []), 'time_us', column],
          recorded.filter((run) => run.seed === seed)
              .flatMap(
                  (run) => run[key].x.map(
                      (time, i) => [run.algorithm, run.seed, ...(port ? [run[port]] : []), time, run[key].y[i]]))],
      make: (host, context) => new LineChart(host, {
        x: {
          label: `time (${this.unit.name})`,
          low: 0,
          tick: (value) => Format.tick(value / this.unit.divisor),
          format: (value) => `${Format.number(value / this.unit.divisor)} ${this.unit.name}`
        },
        y,
        limits,
        align: 'line',
        sync: context.sync,
        bands: this.section.faults.map((fault, i) => ({from: fault.at_us, to: fault.until_us, name: String(i + 1)})),
        lines: this.names.flatMap((name) => {
          const run = recorded.find((one) => one.algorithm === name && one.seed === context.seed);
          return run ? [{...this.style(name), x: run[key].x, y: run[key].y}] : [];
        }),
        hidden: context.hidden,
        onToggle: context.onToggle,
      }),
    };
  }

  // Which port it was, said once when it is the same for all.
  portNote(runs, port) {
    const named = runs.filter((run) => run[port] !== '');
    if (named.length === 0) return '';
    const ports = new Set(named.map((run) => run[port]));
    if (ports.size === 1) return ` Port: ${named[0][port]}.`;
    return ` Ports: ${named.map((run) => `${run.algorithm} ${run[port]}`).join('; ')}.`;
  }

  severalSeeds() {
    return new Set(this.runs.map((run) => run.seed)).size > 1;
  }

  seeds() {
    return [...new Set(this.section.series.map((run) => run.seed))];
  }
}
