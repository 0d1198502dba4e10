// Where the model expects the next point of a pen: its mixture, point by point over a WebSocket.
// A layer on top that nothing depends on: when the socket is refused there is none.
import { draw } from "./elements.js";
import { distance } from "./ink.js";
import { openOnline } from "./service.js";

const MOST_ELLIPSES = 8;
const LEAST_WEIGHT = 0.02;
const SPREAD = 2; // standard deviations from the middle of an ellipse to its rim
// A service that is this far behind shows nothing of use any more.
const MOST_UNANSWERED = 400;

export class Expectation {
  #socket = null;
  #waiting = []; // messages until the socket is open
  #unanswered = 0;
  #last = null; // the last point sent
  #shown;

  /** `shown(mixture, penUp)` hears each answer; `spacing` px lie between two points of the model. */
  constructor(opening, spacing, shown) {
    this.spacing = spacing;
    this.#shown = shown;
    this.#waiting = [opening];
    try {
      this.#socket = openOnline();
    } catch {
      return;
    }
    this.#socket.onopen = () => {
      for (const message of this.#waiting.splice(0)) this.#send(message);
    };
    this.#socket.onmessage = ({ data }) => this.#hear(JSON.parse(data));
    this.#socket.onclose = () => this.close();
  }

  /** A point of the pen as it is drawn: left out if too near, unless the pen leaves the paper. */
  point(place, up) {
    if (!this.#socket) return;
    if (this.#unanswered > MOST_UNANSWERED) return this.close();
    if (!up && this.#last && distance(this.#last, place) < this.spacing) return;
    this.#last = up ? null : place;
    this.#unanswered += 1;
    this.#send({ point: [...place, up ? 1 : 0] });
  }

  #send(message) {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
    else this.#waiting.push(message);
  }

  #hear({ mixture, pen_up: penUp }) {
    if (!mixture) return;
    this.#unanswered -= 1;
    this.#shown(mixture, penUp);
  }

  close() {
    if (!this.#socket) return;
    this.#socket.onmessage = this.#socket.onclose = null; // too late to be of interest
    this.#socket.close();
    this.#socket = null;
    this.#shown([], null);
  }
}

/** The Gaussians of a mixture as soft ellipses. */
export function ellipses(mixture) {
  return mixture
    .slice(0, MOST_ELLIPSES)
    .filter(({ weight }) => weight >= LEAST_WEIGHT)
    .map(ellipse);
}

function ellipse({ weight, mean, sigma: [sx, sy], rho }) {
  // The axes are those of the covariance matrix [[sx², c], [c, sy²]].
  const c = rho * sx * sy;
  const [half, middle] = [(sx * sx - sy * sy) / 2, (sx * sx + sy * sy) / 2];
  const reach = Math.hypot(half, c);
  const radius = (variance) => Math.max(1, SPREAD * Math.sqrt(Math.max(0, variance)));
  const degrees = (Math.atan2(c, half) / 2 / Math.PI) * 180;
  return draw("ellipse", {
    rx: radius(middle + reach),
    ry: radius(middle - reach),
    transform: `translate(${mean.join(" ")}) rotate(${degrees})`,
    opacity: Math.min(1, 0.15 + weight),
  });
}
