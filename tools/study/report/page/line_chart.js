// Curves over a common x axis, drawn by uPlot: one line for each algorithm, limits as dashed lines, faults as bands.
//
// spec: {
//   x: {label, log, low, format, tick}, y: {log, low, high, format, tick},  low and high: the least that the axis
//   covers lines: [{name, colour, dash, x, y}], align: "line" | "cdf" | "tail", limits: [{value, name, colour}], bands:
//   [{from, to, name}], sync: key or null, hidden: Set of names, onToggle(name, shown)
// }
'use strict';

function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Brings lines with x values of their own onto the union of all x values.
const Align = {
  // Between its points a line is interpolated; before the first and behind the last it has no value.
  line(line, xs) {
    let at = 0;
    return xs.map((x) => {
      if (x < line.x[0] || x > line.x[line.x.length - 1]) return null;
      while (at + 1 < line.x.length && line.x[at + 1] <= x) ++at;
      if (line.x[at] === x || at + 1 === line.x.length) return line.y[at];
      const part = (x - line.x[at]) / (line.x[at + 1] - line.x[at]);
      return line.y[at] + part * (line.y[at + 1] - line.y[at]);
    });
  },
  // A distribution is a stair: the share of values that are at most x.
  cdf(line, xs) {
    let at = -1;
    return xs.map((x) => {
      while (at + 1 < line.x.length && line.x[at + 1] <= x) ++at;
      return at < 0 ? 0 : line.y[at];
    });
  },
  // Its tail: the share of values above x; it ends at the largest value, at the share of the last stair.
  tail(line, xs) {
    const last = line.x.length - 1;
    let at = -1;
    return xs.map((x) => {
      if (x > line.x[last]) return null;
      while (at + 1 < line.x.length && line.x[at + 1] <= x) ++at;
      if (at === last) --at;
      return at < 0 ? 1 : 1 - line.y[at];
    });
  },
};

// 1, 2 and 5 of each decade that lies in the range; decades alone when that would be too many.
function logTicks(low, high) {
  if (!(low > 0 && high >= low)) return [];
  const ticks = [];
  const factors = high / low > 300 ? [1] : [1, 2, 5];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power) {
    for (const factor of factors) {
      const tick = Number((factor * Math.pow(10, power)).toPrecision(3));
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  return ticks;
}

class LineChart {
  constructor(host, spec) {
    this.host = host;
    this.spec = spec;
    this.silent = false;
    this.chart = new uPlot(this.options(), this.data(), host);
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(host);
  }

  data() {
    const {lines, align, x} = this.spec;
    let xs = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
    if (align !== 'line' && xs.length > 0) {
      const [low, high] = this.xRange(xs[0], xs[xs.length - 1]);
      xs = [low, ...xs.filter((value) => value > low && value < high), high];
    }
    if (x.log) xs = xs.filter((value) => value > 0);
    return [xs, ...lines.map((line) => Align[align](line, xs))];
  }

  // Some room at both ends of a distribution, where its curve runs flat.
  xRange(low, high) {
    if (this.spec.x.log) return [low / 1.15, high * 1.15];
    const room = (high - low || Math.abs(high) || 1) * 0.04;
    return [Math.max(low - room, low >= 0 ? 0 : -Infinity), high + room];
  }

  yRange(low, high) {
    const {y} = this.spec;
    if (y.log) return [Math.max(low ?? 0.01, 1e-9) * 0.8, Math.max(high ?? 1, y.high ?? 0) * 1.2];
    const least = y.low ?? 0;
    return [Math.min(least, low ?? least), Math.max(y.high ?? 0, (high ?? 1) * 1.05) || 1];
  }

  size() {
    return {width: Math.max(200, this.host.clientWidth), height: this.host.clientWidth < 420 ? 210 : 270};
  }

  options() {
    const {spec} = this;
    const font = '12px system-ui, -apple-system, \'Segoe UI\', Roboto, \'Helvetica Neue\', Arial, sans-serif';
    const common = {
      font,
      labelFont: font,
      stroke: () => cssColour('--soft'),
      grid: {stroke: () => cssColour('--grid'), width: 1},
      ticks: {show: false},
    };
    const axis = (part, key, more) => ({
      ...common,
      ...more,
      values: (_, splits) => splits.map((value) => (value === null ? '' : (part.tick ?? Format.tick)(value))),
      ...(part.log ? {splits: (u) => logTicks(u.scales[key].min, u.scales[key].max), filter: (_, splits) => splits} :
                     {}),
    });
    const distr = (part) => (part.log ? 3 : 1);
    return {
      ...this.size(),
      padding: [14, 24, 0, 0],
      scales: {
        x: {time: false, distr: distr(spec.x), range: (u, low, high) => this.zoomedOr(u, low, high)},
        y: {distr: distr(spec.y), range: (_, low, high) => this.yRange(low, high)},
      },
      axes: [
        axis(spec.x, 'x', {label: spec.x.label, labelSize: 20, size: 30, gap: 6}),
        axis(spec.y, 'y', {size: (_, values) => 16 + 7 * Math.max(2, ...(values ?? []).map((v) => String(v).length))}),
      ],
      cursor: {
        focus: {prox: 24},
        drag: {x: true, y: false},
        points: {size: 6},
        ...(spec.sync ? {sync: {key: spec.sync, scales: ['x', null], setSeries: false}} : {}),
      },
      focus: {alpha: 0.3},
      legend: {markers: {width: 0, fill: (u, i) => cssColour(`--series-${spec.lines[i - 1]?.colour}`)}},
      series: [
        {label: 'at', value: (_, value) => (value === null ? '' : spec.x.format(value))},
        ...spec.lines.map((line) => ({
                            label: line.name,
                            show: !spec.hidden.has(line.name),
                            stroke: () => cssColour(`--series-${line.colour}`),
                            dash: line.dash > 0 ? [8 / line.dash, 4] : undefined,
                            width: line.colour === 0 ? 2.25 : 1.6,
                            points: {show: spec.points === true, size: 5},
                            paths: spec.align === 'line' ? undefined : uPlot.paths.stepped({align: 1}),
                            value: (_, value) => (value === null || value === undefined ? '' : spec.y.format(value)),
                          })),
      ],
      hooks: {
        drawClear: [(u) => this.drawBands(u)],
        draw: [(u) => this.drawLimits(u)],
        setSeries: [
          (u, index, change) => {
            if (this.silent || index === null || change.show === undefined || index === 0) return;
            spec.onToggle(spec.lines[index - 1].name, change.show);
          },
        ],
      },
    };
  }

  // The range that a drag chose, or all of the data with some room.
  zoomedOr(u, low, high) {
    const xs = u.data[0];
    const whole = xs.length === 0 || (low === xs[0] && high === xs[xs.length - 1]);
    if (low === null || high === null) return [0, 1];
    if (this.spec.x.log && whole && this.spec.align === 'line') return [low / 1.15, high * 1.15];
    return [whole ? Math.min(this.spec.x.low ?? low, low) : low, high > low ? high : low + 1];
  }

  drawBands(u) {
    const {ctx, bbox} = u;
    const labels = [];
    const bands = [...(this.spec.bands ?? [])].sort((a, b) => a.from - b.from);
    for (const band of bands) {
      const from = Math.max(u.valToPos(band.from, 'x', true), bbox.left);
      const to = Math.min(u.valToPos(band.to ?? u.scales.x.max, 'x', true), bbox.left + bbox.width);
      if (!(to > from)) continue;
      ctx.save();
      ctx.fillStyle = cssColour('--band');
      ctx.fillRect(from, bbox.top, to - from, bbox.height);
      ctx.restore();
      // Bands that begin close together share a label.
      const last = labels.at(-1);
      if (last && from - last.x < 16 * devicePixelRatio) {
        last.text += `, ${band.name}`;
      } else {
        labels.push({x: from, text: band.name});
      }
    }
    for (const {x, text} of labels) {
      this.writeLabel(u, text, x + 4 * devicePixelRatio, bbox.top + 10 * devicePixelRatio, 'left', '--soft');
    }
  }

  drawLimits(u) {
    const {ctx, bbox} = u;
    let lastLabel = -Infinity;
    const limits = [...(this.spec.limits ?? [])].sort((a, b) => b.value - a.value);
    for (const limit of limits) {
      if (limit.owner && this.spec.hidden.has(limit.owner)) continue;
      const y = Math.round(u.valToPos(limit.value, 'y', true));
      if (y < bbox.top - 1 || y > bbox.top + bbox.height) continue;
      ctx.save();
      ctx.strokeStyle = cssColour(limit.colour);
      ctx.lineWidth = devicePixelRatio;
      ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      ctx.restore();
      const room = 13 * devicePixelRatio;
      if (y - lastLabel < room) continue;
      lastLabel = y;
      this.writeLabel(
          u, limit.name, bbox.left + bbox.width - 4 * devicePixelRatio, y - 7 * devicePixelRatio, 'right',
          limit.colour);
    }
  }

  // Text on the canvas, with a halo so that curves behind it do not disturb.
  writeLabel(u, text, x, y, align, colour) {
    const {ctx} = u;
    ctx.save();
    ctx.font = `${11 * devicePixelRatio}px system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif`;
    ctx.textAlign = align;
    ctx.textBaseline = 'middle';
    ctx.lineWidth = 4 * devicePixelRatio;
    ctx.lineJoin = 'round';
    ctx.strokeStyle = cssColour('--panel');
    ctx.strokeText(text, x, y);
    ctx.fillStyle = cssColour(colour);
    ctx.fillText(text, x, y);
    ctx.restore();
  }

  show(name, shown) {
    const index = this.spec.lines.findIndex((line) => line.name === name) + 1;
    if (index === 0 || this.chart.series[index].show === shown) return;
    this.silent = true;
    this.chart.setSeries(index, {show: shown});
    this.silent = false;
  }

  fit() {
    const size = this.size();
    if (size.width !== this.chart.width) this.chart.setSize(size);
  }

  repaint() {
    this.chart.root.querySelectorAll('.u-series').forEach((row, i) => {
      const marker = row.querySelector('.u-marker');
      if (marker && i > 0) marker.style.background = cssColour(`--series-${this.spec.lines[i - 1].colour}`);
    });
    this.chart.redraw(false, true);
  }

  destroy() {
    this.observer.disconnect();
    this.chart.destroy();
  }
}
