// Numbers as a person reads them, and the making of elements and of files to save.
'use strict';

const Format = {
  // Thousands separated, about four digits that matter.
  number(value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return '\u2013';
    const size = Math.abs(value);
    const digits = size === 0 || size >= 1000 || Number.isInteger(value) ? 0 : size >= 100 ? 1 : size >= 0.1 ? 2 : 3;
    return value.toLocaleString('en-US', {minimumFractionDigits: digits, maximumFractionDigits: digits});
  },
  // For ticks: no more digits than the number has.
  tick(value) {
    return Number(value.toPrecision(6)).toLocaleString('en-US', {maximumFractionDigits: 6});
  },
  ratio(value) {
    return Number.isFinite(value) ? value.toFixed(3) : '\u2013';
  },
  percent(fraction) {
    if (fraction === null || fraction === undefined) return '\u2013';
    return Number((fraction * 100).toPrecision(4)).toString() + ' %';
  },
  // Microseconds; `longest` chooses between microseconds, milliseconds and seconds for a whole axis.
  timeUnit(longest) {
    if (longest >= 1e7) return {name: 's', divisor: 1e6};
    return longest >= 1e4 ? {name: 'ms', divisor: 1e3} : {name: '\u00b5s', divisor: 1};
  },
};

// Makes an element; `content` is text or a list of elements. Text never becomes markup.
function element(tag, attributes = {}, content = '') {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'colour')
      made.style.setProperty('--c', `var(--series-${value})`);
    else if (value !== null && value !== undefined)
      made.setAttribute(name, value);
  }
  if (Array.isArray(content))
    made.append(...content);
  else
    made.textContent = content;
  return made;
}

// Round values between low and high, about `count` of them.
function niceTicks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / count;
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough) ?? 10 * power;
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) ticks.push(i * step);
  return ticks;
}

// Rows of values as CSV (RFC 4180).
function toCsv(head, rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? '' : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [head, ...rows].map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n';
}

function saveFile(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], {type}));
  const link = element('a', {href: url, download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

function fileName(...parts) {
  return parts.join('-').toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '');
}
