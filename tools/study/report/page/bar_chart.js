// Horizontal bars, one row for each algorithm, as plain elements.
//
// spec: {
//   rows: [{name, colour (none: without a swatch, bars have a style of their own), bars: [{from, to, lane, style, title}], dots: [value], value, below}],
//   low, high: the least that the scale covers; tick(value): its text; limit: {value, name} or null
// }
'use strict';

class BarChart {
  constructor(host, spec) {
    const values = spec.rows.flatMap((row) => [...row.bars.flatMap((bar) => [bar.from, bar.to]), ...row.dots]);
    if (spec.limit) values.push(spec.limit.value);
    const low = Math.min(spec.low, ...values);
    const high = Math.max(spec.high, ...values) * 1.02;
    const percent = (value) => `${(100 * (value - low)) / (high - low)}%`;
    const ticks = niceTicks(low, high, Math.min(4, Math.max(1, Math.floor((host.clientWidth - 250) / 45))));

    this.parts = new Map();
    this.root = element('div', {class: 'rows'});
    for (const row of spec.rows) {
      const track = element('div', {class: 'track', ...(row.colour === undefined ? {} : {colour: row.colour})});
      for (const tick of ticks) {
        const mark = element('i', {class: tick === 0 ? 'tick zero' : 'tick'});
        mark.style.left = percent(tick);
        track.append(mark);
      }
      const lanes = 1 + Math.max(0, ...row.bars.map((bar) => bar.lane ?? 0));
      for (const bar of row.bars) {
        if (bar.to === bar.from) continue;
        const drawn = element('i', {class: `bar ${bar.style ?? ''}`, title: bar.title});
        drawn.style.left = percent(Math.min(bar.from, bar.to));
        drawn.style.width = `${(100 * Math.abs(bar.to - bar.from)) / (high - low)}%`;
        drawn.style.top = `${24 + (52 / lanes) * (bar.lane ?? 0)}%`;
        drawn.style.height = `${52 / lanes}%`;
        track.append(drawn);
      }
      for (const value of row.dots) {
        const dot = element('i', {class: 'dot'});
        dot.style.left = percent(value);
        dot.style.top = '50%';
        track.append(dot);
      }
      if (spec.limit) {
        const mark = element('i', {class: 'tick limit', title: spec.limit.name});
        mark.style.left = percent(spec.limit.value);
        track.append(mark);
      }
      const swatch = row.colour === undefined ? [] : [element('i', {class: 'swatch', colour: row.colour})];
      const label = element('div', {class: 'label'}, [...swatch, row.name]);
      const value =
          element('div', {class: 'value'}, [row.value, ...(row.below ? [element('small', {}, row.below)] : [])]);
      this.parts.set(row.name, [label, track, value]);
      this.root.append(label, track, value);
    }
    this.root.append(this.scale(spec, ticks, percent, low, high));
    host.append(this.root);
  }

  scale(spec, ticks, percent, low, high) {
    const line = element('div', {class: 'scale'});
    for (const tick of ticks) {
      const at = (tick - low) / (high - low);
      const text = element('span', {class: at < 0.06 ? 'first' : at > 0.94 ? 'last' : ''}, spec.tick(tick));
      text.style.left = percent(tick);
      line.append(text);
    }
    return line;
  }

  show(name, shown) {
    for (const part of this.parts.get(name) ?? []) part.classList.toggle('off', !shown);
  }

  repaint() {}

  destroy() {
    this.root.remove();
  }
}
